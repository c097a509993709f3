// int8 product by tiles, 17 to 32 rows x panels of 32 channels.
//
// Two tiles of rows by two of weights: loads of 32 + rows lines, two a cycle, feed products of 2 * rows
// cycles, so that the multiplier and not the loads bound the loop, from L2 (48 bytes a cycle) from 22 rows
// on; and from 26 rows on four independent accumulators cover a product's latency of 52 cycles (Intel 64 and
// IA-32 Optimization Reference Manual, Sapphire Rapids). The tiles are set for the number of rows before.
#include "rows__amx_int8.h"
#include "tiles__amx_int8.h"

extern "C" void moe_qu8s8_gemm_32x32c64__amx_int8(size_t kc, size_t panels, size_t panel_bytes,
                                                  const void *const *rows, const void *first,
                                                  int32_t *acc, size_t acc_stride) {
    MOE_REQUIRE(kc > 0);
    MOE_REQUIRE(panels > 0);
    MOE_REQUIRE(panel_bytes >= MOE_VNNI_CORRECTION_BYTES +
                                   moe_vnni_round_up(kc, MOE_AMX_KR) * MOE_VNNI_NR);
    MOE_REQUIRE(acc_stride >= panels * MOE_VNNI_NR);
    MOE_REQUIRE((uintptr_t)first % 64 == 0);
    const size_t row_stride = (size_t)((const uint8_t *)rows[1] - (const uint8_t *)rows[0]);
    const size_t row_bytes = moe_vnni_round_up(kc, MOE_AMX_KR);
    const int8_t *panel = (const int8_t *)first;
    MOE_STORES_ARE_READ();
    for (size_t p = 0; p < panels; ++p, panel += panel_bytes, acc += MOE_VNNI_NR) {
        const uint8_t *x0 = (const uint8_t *)rows[0], *end = x0 + row_bytes;
        const uint8_t *x1 = (const uint8_t *)rows[MOE_AMX_TILE_ROWS];
        MOE_REQUIRE(x1 == x0 + MOE_AMX_TILE_ROWS * row_stride);
        const int8_t *w = panel + MOE_VNNI_CORRECTION_BYTES;
        _tile_loadd(MOE_ACC_00, panel, 0);
        _tile_loadd(MOE_ACC_01, panel + 64, 0);
        _tile_loadd(MOE_ACC_10, panel, 0);
        _tile_loadd(MOE_ACC_11, panel + 64, 0);
        for (; x0 < end; x0 += MOE_AMX_KR, x1 += MOE_AMX_KR, w += 2 * 64 * MOE_AMX_TILE_ROWS) {
            _tile_loadd(MOE_ROWS_0, x0, row_stride);
            _tile_loadd(MOE_WEIGHTS_0, w, 128);
            _tile_dpbusd(MOE_ACC_00, MOE_ROWS_0, MOE_WEIGHTS_0);
            _tile_loadd(MOE_WEIGHTS_1, w + 64, 128);
            _tile_dpbusd(MOE_ACC_01, MOE_ROWS_0, MOE_WEIGHTS_1);
            _tile_loadd(MOE_ROWS_1, x1, row_stride);
            _tile_dpbusd(MOE_ACC_10, MOE_ROWS_1, MOE_WEIGHTS_0);
            _tile_dpbusd(MOE_ACC_11, MOE_ROWS_1, MOE_WEIGHTS_1);
        }
        int32_t *second = acc + MOE_AMX_TILE_ROWS * acc_stride;
        _tile_stored(MOE_ACC_00, acc, acc_stride * sizeof(int32_t));
        _tile_stored(MOE_ACC_01, acc + 16, acc_stride * sizeof(int32_t));
        _tile_stored(MOE_ACC_10, second, acc_stride * sizeof(int32_t));
        _tile_stored(MOE_ACC_11, second + 16, acc_stride * sizeof(int32_t));
    }
    MOE_STORES_ARE_READ();
}
