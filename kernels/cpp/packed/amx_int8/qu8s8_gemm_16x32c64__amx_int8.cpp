// int8 product by tiles, 3 to 16 rows x 32 channels.
//
// One tile of rows by two of weights, and even and odd blocks of k in accumulators of their own: two
// would wait for a product's latency of 52 cycles. Six loads of 8 cycles for four products of up to 16.
// By the same figures one row takes 16 cycles per 64 k with vpdpbusd, two rows 32 and three 48, where
// this takes 24 and what stands around the loop: hence the least number of rows.
#include "rows__amx_int8.h"
#include "tiles__amx_int8.h"

namespace {

constexpr size_t kBlockBytes = 2 * 64 * MOE_AMX_TILE_ROWS; // of weights, 64 k

template <size_t MR>
__attribute__((always_inline)) inline void
gemm_tile(size_t kc, const void *const *rows, const void *panel, int32_t *acc, size_t acc_stride) {
    static_assert(MR >= MOE_AMX_LEAST_ROWS && MR <= MOE_AMX_TILE_ROWS, "one tile of rows");
    MOE_REQUIRE(kc > 0);
    MOE_REQUIRE(acc_stride >= MOE_VNNI_NR);
    MOE_REQUIRE((uintptr_t)panel % 64 == 0);
    const uint8_t *x = (const uint8_t *)rows[0];
    const size_t row_stride = (size_t)((const uint8_t *)rows[1] - x);
    MOE_REQUIRE((const uint8_t *)rows[MR - 1] == x + (MR - 1) * row_stride);
    const int8_t *w = (const int8_t *)panel + MOE_VNNI_CORRECTION_BYTES;
    const size_t blocks = moe_vnni_round_up(kc, MOE_AMX_KR) / MOE_AMX_KR;
    MOE_STORES_ARE_READ();
    _tile_loadd(MOE_ACC_00, panel, 0);
    _tile_loadd(MOE_ACC_01, (const int8_t *)panel + 64, 0);
    _tile_zero(MOE_ACC_10);
    _tile_zero(MOE_ACC_11);
    for (size_t pair = 0; pair < blocks / 2; ++pair) {
        _tile_loadd(MOE_ROWS_0, x, row_stride);
        _tile_loadd(MOE_WEIGHTS_0, w, 128);
        _tile_dpbusd(MOE_ACC_00, MOE_ROWS_0, MOE_WEIGHTS_0);
        _tile_loadd(MOE_WEIGHTS_1, w + 64, 128);
        _tile_dpbusd(MOE_ACC_01, MOE_ROWS_0, MOE_WEIGHTS_1);
        _tile_loadd(MOE_ROWS_1, x + MOE_AMX_KR, row_stride);
        _tile_loadd(MOE_WEIGHTS_0, w + kBlockBytes, 128);
        _tile_dpbusd(MOE_ACC_10, MOE_ROWS_1, MOE_WEIGHTS_0);
        _tile_loadd(MOE_WEIGHTS_1, w + kBlockBytes + 64, 128);
        _tile_dpbusd(MOE_ACC_11, MOE_ROWS_1, MOE_WEIGHTS_1);
        x += 2 * MOE_AMX_KR;
        w += 2 * kBlockBytes;
    }
    if (blocks % 2 != 0) {
        _tile_loadd(MOE_ROWS_0, x, row_stride);
        _tile_loadd(MOE_WEIGHTS_0, w, 128);
        _tile_loadd(MOE_WEIGHTS_1, w + 64, 128);
        _tile_dpbusd(MOE_ACC_00, MOE_ROWS_0, MOE_WEIGHTS_0);
        _tile_dpbusd(MOE_ACC_01, MOE_ROWS_0, MOE_WEIGHTS_1);
    }
    _tile_stored(MOE_ACC_00, acc, acc_stride * sizeof(int32_t));
    _tile_stored(MOE_ACC_01, acc + 16, acc_stride * sizeof(int32_t));
    if (blocks == 1) {
        return;
    }
    alignas(64) int32_t odd[MOE_AMX_TILE_ROWS][MOE_VNNI_NR];
    _tile_stored(MOE_ACC_10, odd[0], sizeof odd[0]);
    _tile_stored(MOE_ACC_11, odd[0] + 16, sizeof odd[0]);
    MOE_STORES_ARE_READ();
    for (size_t m = 0; m < MR; ++m) {
        for (size_t c = 0; c < MOE_VNNI_NR; ++c) {
            const uint32_t sum = (uint32_t)acc[m * acc_stride + c] + (uint32_t)odd[m][c];
            acc[m * acc_stride + c] = (int32_t)sum;
        }
    }
}

} // namespace

#define MOE_DEFINE_GEMM(mr)                                                                        \
    extern "C" void moe_qu8s8_gemm_##mr##x32c64__amx_int8(                                         \
        size_t kc, const void *const *rows, const void *panel, int32_t *acc, size_t acc_stride) {  \
        gemm_tile<mr>(kc, rows, panel, acc, acc_stride);                                           \
    }
MOE_AMX_EACH_SMALL_TILE(MOE_DEFINE_GEMM)
