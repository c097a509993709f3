// int16 product of router rows by tiles: up to sixteen tokens x 32 experts.
//
// Per 64 d and 16 experts four products of 16 cycles beside four loads of 8, in four accumulators, which
// cover a product's latency of 52 cycles. Sums wrap modulo 2^32 in every part and so does what they are put
// together to: the result is that of ../avx512_vnni/qs16_gemm_8x32c2__avx512_vnni.cpp. Tiles have sixteen
// rows whatever mr is: the memory of sixteen rows is read, mr rows are written.
#include "candidates__amx_int8.h"
#include "tiles__amx_int8.h"

namespace {

// acc = or += 65536 high high + 256 (high low + low high) + low low
__attribute__((always_inline)) inline void
put_together(size_t mr, const int32_t (*part)[MOE_AMX_TILE_ROWS][16], int first, int32_t *acc,
             size_t acc_stride) {
    for (size_t m = 0; m < mr; ++m) {
        const moe_sums mixed = *(const moe_sums *)part[1][m] + *(const moe_sums *)part[2][m];
        const moe_sums high = *(const moe_sums *)part[0][m] << 16;
        const moe_sums sum = high + (mixed << 8) + *(const moe_sums *)part[3][m];
        moe_sums *to = (moe_sums *)(acc + m * acc_stride);
        *to = first ? sum : *to + sum;
    }
}

} // namespace

extern "C" void moe_qs16_gemm_16x32c64__amx_int8(size_t mr, size_t pairs,
                                                 const int16_t *const *rows, const int16_t *panel,
                                                 int first, int32_t *acc, size_t acc_stride) {
    MOE_REQUIRE(mr >= 1 && mr <= MOE_AMX_TILE_ROWS);
    MOE_REQUIRE(pairs > 0);
    MOE_REQUIRE(acc_stride >= MOE_VNNI_NR);
    MOE_REQUIRE((uintptr_t)panel % 64 == 0);
    const size_t row_stride = sizeof(int16_t) * moe_amx_row16_values(2 * pairs);
    MOE_REQUIRE(mr == 1 || (const uint8_t *)rows[1] == (const uint8_t *)rows[0] + row_stride);
    const size_t blocks = moe_vnni_round_up(2 * pairs, MOE_AMX_KR) / MOE_AMX_KR;
    const int8_t *w = (const int8_t *)panel;
    alignas(64) int32_t part[4][MOE_AMX_TILE_ROWS][16];
    MOE_STORES_ARE_READ();
    for (size_t half = 0; half < MOE_VNNI_NR; half += 16) {
        const uint8_t *x = (const uint8_t *)rows[0], *end = x + blocks * 2 * MOE_AMX_KR;
        _tile_zero(MOE_ACC_00);
        _tile_zero(MOE_ACC_01);
        _tile_zero(MOE_ACC_10);
        _tile_zero(MOE_ACC_11);
        for (; x < end; x += 2 * MOE_AMX_KR, w += 2 * 64 * MOE_AMX_TILE_ROWS) {
            _tile_loadd(MOE_ROWS_0, x, row_stride);
            _tile_loadd(MOE_WEIGHTS_0, w, 64);
            _tile_dpbssd(MOE_ACC_00, MOE_ROWS_0, MOE_WEIGHTS_0);
            _tile_loadd(MOE_WEIGHTS_1, w + 64 * MOE_AMX_TILE_ROWS, 64);
            _tile_dpbsud(MOE_ACC_01, MOE_ROWS_0, MOE_WEIGHTS_1);
            _tile_loadd(MOE_ROWS_1, x + MOE_AMX_KR, row_stride);
            _tile_dpbusd(MOE_ACC_10, MOE_ROWS_1, MOE_WEIGHTS_0);
            _tile_dpbuud(MOE_ACC_11, MOE_ROWS_1, MOE_WEIGHTS_1);
        }
        _tile_stored(MOE_ACC_00, part[0][0], 64);
        _tile_stored(MOE_ACC_01, part[1][0], 64);
        _tile_stored(MOE_ACC_10, part[2][0], 64);
        _tile_stored(MOE_ACC_11, part[3][0], 64);
        MOE_STORES_ARE_READ();
        put_together(mr, part, first, acc + half, acc_stride);
    }
}
