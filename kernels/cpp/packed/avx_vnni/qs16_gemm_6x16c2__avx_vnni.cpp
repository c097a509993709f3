// int16 product of router rows: up to six tokens x 16 experts over one block of d, k in pairs.
//
// vpdpwssd adds two products of int16 to an int32 lane. Sums may wrap modulo 2^32 on the way: the
// caller's scales keep the final one below 2^31 (see router_candidates.h), so it is exact. Rows
// beyond mr compute the last one's values again and store nothing.
#include "../avx2/vectors__avx2.h"
#include "candidates__avx_vnni.h"
#include "rows__avx_vnni.h"

extern "C" void moe_qs16_gemm_6x16c2__avx_vnni(size_t mr, size_t pairs, const int16_t *const *rows,
                                               const int16_t *panel, int first, int32_t *acc,
                                               size_t acc_stride) {
    constexpr size_t kRows = 6;
    MOE_REQUIRE(mr >= 1 && mr <= kRows);
    MOE_REQUIRE(pairs > 0);
    MOE_REQUIRE(acc_stride >= MOE_NR);
    MOE_REQUIRE((uintptr_t)panel % 64 == 0);
    const int16_t *x[kRows];
    __m256i sum[kRows][2];
#pragma GCC unroll 6
    for (size_t m = 0; m < kRows; ++m) {
        x[m] = rows[m < mr ? m : mr - 1];
        sum[m][0] = sum[m][1] = _mm256_setzero_si256();
    }
    const int16_t *w = panel;
    for (size_t k = 0; k < pairs; ++k, w += 2 * MOE_NR) {
        const __m256i w0 = load_i8x32(w);
        const __m256i w1 = load_i8x32(w + MOE_NR);
#pragma GCC unroll 6
        for (size_t m = 0; m < kRows; ++m) {
            const __m256i q = broadcast_i8x4(x[m] + 2 * k);
            sum[m][0] = _mm256_dpwssd_avx_epi32(sum[m][0], q, w0);
            sum[m][1] = _mm256_dpwssd_avx_epi32(sum[m][1], q, w1);
        }
    }
#pragma GCC unroll 6
    for (size_t m = 0; m < kRows; ++m) {
        if (m < mr) {
            int32_t *out = acc + m * acc_stride;
            if (!first) {
                sum[m][0] = _mm256_add_epi32(load_i8x32(out), sum[m][0]);
                sum[m][1] = _mm256_add_epi32(load_i8x32(out + 8), sum[m][1]);
            }
            store_i32x8(out, sum[m][0]);
            store_i32x8(out + 8, sum[m][1]);
        }
    }
}
