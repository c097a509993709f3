// int8 product by tiles, 3 to 16 rows x panels of 32 channels.
//
// One tile of rows by four of weights, two panels at a time, so that every sum is whole when its tile is
// stored. Per 64 k that is four products of as many cycles as there are rows beside loads of 64 + rows lines,
// two a cycle from L1, and the four accumulators' latency of 52 cycles; but 64 lines of weights take 85 cycles
// from L2, which holds an expert where L1 does not: whatever the blocking, L2 binds up to 16 rows.
//
// A panel that is left over takes even and odd blocks of k in accumulators of their own instead.
#include "rows__amx_int8.h"
#include "tiles__amx_int8.h"

namespace {

constexpr size_t kBlockBytes = 2 * 64 * MOE_AMX_TILE_ROWS; // of weights, 64 k

// The rows of a call: sixteen or fewer at equal distances.
struct Rows {
    const uint8_t *x;
    size_t stride, blocks;
};

__attribute__((always_inline)) inline void two_panels(const Rows &rows, const int8_t *panel,
                                                      size_t panel_bytes, int32_t *acc,
                                                      size_t acc_stride) {
    const uint8_t *x = rows.x, *end = x + rows.blocks * MOE_AMX_KR;
    const int8_t *w = panel + MOE_VNNI_CORRECTION_BYTES;
    _tile_loadd(MOE_ACC_00, panel, 0);
    _tile_loadd(MOE_ACC_01, panel + 64, 0);
    _tile_loadd(MOE_ACC_10, panel + panel_bytes, 0);
    _tile_loadd(MOE_ACC_11, panel + panel_bytes + 64, 0);
    for (; x < end; x += MOE_AMX_KR, w += kBlockBytes) {
        _tile_loadd(MOE_ROWS_0, x, rows.stride);
        _tile_loadd(MOE_WEIGHTS_0, w, 128);
        _tile_dpbusd(MOE_ACC_00, MOE_ROWS_0, MOE_WEIGHTS_0);
        _tile_loadd(MOE_WEIGHTS_1, w + 64, 128);
        _tile_dpbusd(MOE_ACC_01, MOE_ROWS_0, MOE_WEIGHTS_1);
        _tile_loadd(MOE_WEIGHTS_0, w + panel_bytes, 128);
        _tile_dpbusd(MOE_ACC_10, MOE_ROWS_0, MOE_WEIGHTS_0);
        _tile_loadd(MOE_WEIGHTS_1, w + panel_bytes + 64, 128);
        _tile_dpbusd(MOE_ACC_11, MOE_ROWS_0, MOE_WEIGHTS_1);
    }
    _tile_stored(MOE_ACC_00, acc, acc_stride * sizeof(int32_t));
    _tile_stored(MOE_ACC_01, acc + 16, acc_stride * sizeof(int32_t));
    _tile_stored(MOE_ACC_10, acc + 32, acc_stride * sizeof(int32_t));
    _tile_stored(MOE_ACC_11, acc + 48, acc_stride * sizeof(int32_t));
}

template <size_t MR>
__attribute__((always_inline)) inline void one_panel(const Rows &rows, const int8_t *panel,
                                                     int32_t *acc, size_t acc_stride) {
    const uint8_t *x = rows.x;
    const int8_t *w = panel + MOE_VNNI_CORRECTION_BYTES;
    _tile_loadd(MOE_ACC_00, panel, 0);
    _tile_loadd(MOE_ACC_01, panel + 64, 0);
    _tile_zero(MOE_ACC_10);
    _tile_zero(MOE_ACC_11);
    for (size_t pair = 0; pair < rows.blocks / 2; ++pair) {
        _tile_loadd(MOE_ROWS_0, x, rows.stride);
        _tile_loadd(MOE_WEIGHTS_0, w, 128);
        _tile_dpbusd(MOE_ACC_00, MOE_ROWS_0, MOE_WEIGHTS_0);
        _tile_loadd(MOE_WEIGHTS_1, w + 64, 128);
        _tile_dpbusd(MOE_ACC_01, MOE_ROWS_0, MOE_WEIGHTS_1);
        _tile_loadd(MOE_ROWS_1, x + MOE_AMX_KR, rows.stride);
        _tile_loadd(MOE_WEIGHTS_0, w + kBlockBytes, 128);
        _tile_dpbusd(MOE_ACC_10, MOE_ROWS_1, MOE_WEIGHTS_0);
        _tile_loadd(MOE_WEIGHTS_1, w + kBlockBytes + 64, 128);
        _tile_dpbusd(MOE_ACC_11, MOE_ROWS_1, MOE_WEIGHTS_1);
        x += 2 * MOE_AMX_KR;
        w += 2 * kBlockBytes;
    }
    if (rows.blocks % 2 != 0) {
        _tile_loadd(MOE_ROWS_0, x, rows.stride);
        _tile_loadd(MOE_WEIGHTS_0, w, 128);
        _tile_loadd(MOE_WEIGHTS_1, w + 64, 128);
        _tile_dpbusd(MOE_ACC_00, MOE_ROWS_0, MOE_WEIGHTS_0);
        _tile_dpbusd(MOE_ACC_01, MOE_ROWS_0, MOE_WEIGHTS_1);
    }
    _tile_stored(MOE_ACC_00, acc, acc_stride * sizeof(int32_t));
    _tile_stored(MOE_ACC_01, acc + 16, acc_stride * sizeof(int32_t));
    if (rows.blocks == 1) {
        return;
    }
    alignas(64) int32_t odd[MOE_AMX_TILE_ROWS][MOE_VNNI_NR];
    _tile_stored(MOE_ACC_10, odd[0], sizeof odd[0]);
    _tile_stored(MOE_ACC_11, odd[0] + 16, sizeof odd[0]);
    MOE_STORES_ARE_READ();
    for (size_t m = 0; m < MR; ++m) {
        moe_sums *to = (moe_sums *)(acc + m * acc_stride);
        const moe_sums *more = (const moe_sums *)odd[m];
        to[0] += more[0];
        to[1] += more[1];
    }
}

template <size_t MR>
__attribute__((always_inline)) inline void
gemm_panels(size_t kc, size_t panels, size_t panel_bytes, const void *const *rows,
            const void *first, int32_t *acc, size_t acc_stride) {
    static_assert(MR >= MOE_AMX_LEAST_ROWS && MR <= MOE_AMX_TILE_ROWS, "one tile of rows");
    MOE_REQUIRE(kc > 0);
    MOE_REQUIRE(panels > 0);
    MOE_REQUIRE(panel_bytes >= MOE_VNNI_CORRECTION_BYTES +
                                   moe_vnni_round_up(kc, MOE_AMX_KR) * MOE_VNNI_NR);
    MOE_REQUIRE(acc_stride >= panels * MOE_VNNI_NR);
    MOE_REQUIRE((uintptr_t)first % 64 == 0);
    const uint8_t *x = (const uint8_t *)rows[0];
    const Rows all{x, (size_t)((const uint8_t *)rows[1] - x),
                   moe_vnni_round_up(kc, MOE_AMX_KR) / MOE_AMX_KR};
    MOE_REQUIRE((const uint8_t *)rows[MR - 1] == x + (MR - 1) * all.stride);
    const int8_t *panel = (const int8_t *)first;
    MOE_STORES_ARE_READ();
    size_t p = 0;
    for (; p + 2 <= panels; p += 2, panel += 2 * panel_bytes, acc += 2 * MOE_VNNI_NR) {
        two_panels(all, panel, panel_bytes, acc, acc_stride);
    }
    if (p < panels) {
        one_panel<MR>(all, panel, acc, acc_stride);
    }
    MOE_STORES_ARE_READ();
}

} // namespace

#define MOE_DEFINE_GEMM(mr)                                                                        \
    extern "C" void moe_qu8s8_gemm_##mr##x32c64__amx_int8(                                         \
        size_t kc, size_t panels, size_t panel_bytes, const void *const *rows, const void *panel,  \
        int32_t *acc, size_t acc_stride) {                                                         \
        gemm_panels<mr>(kc, panels, panel_bytes, rows, panel, acc, acc_stride);                    \
    }
MOE_AMX_EACH_SMALL_TILE(MOE_DEFINE_GEMM)
