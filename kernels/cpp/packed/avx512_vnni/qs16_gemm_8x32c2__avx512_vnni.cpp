// int16 product of router rows: up to eight tokens x 32 experts over one block of d, k in pairs.
//
// vpdpwssd adds two products of int16 to an int32 lane. Sums may wrap modulo 2^32 on the way: the
// caller's scales keep the final one below 2^31 (see router_candidates.h), so it is exact. Rows
// beyond mr compute the last one's values again and store nothing.
#include "candidates__avx512_vnni.h"
#include "rows__avx512_vnni.h"
#include "vectors__avx512_vnni.h"

extern "C" void moe_qs16_gemm_8x32c2__avx512_vnni(size_t mr, size_t pairs,
                                                  const int16_t *const *rows, const int16_t *panel,
                                                  int first, int32_t *acc, size_t acc_stride) {
    constexpr size_t kRows = 8;
    MOE_REQUIRE(mr >= 1 && mr <= kRows);
    MOE_REQUIRE(pairs > 0);
    MOE_REQUIRE(acc_stride >= MOE_VNNI_NR);
    MOE_REQUIRE((uintptr_t)panel % 64 == 0);
    const int16_t *x[kRows];
    __m512i sum[kRows][2];
#pragma GCC unroll 8
    for (size_t m = 0; m < kRows; ++m) {
        x[m] = rows[m < mr ? m : mr - 1];
        sum[m][0] = sum[m][1] = _mm512_setzero_si512();
    }
    const int16_t *w = panel;
    for (size_t k = 0; k < pairs; ++k, w += 2 * MOE_VNNI_NR) {
        const __m512i w0 = _mm512_load_si512(w);
        const __m512i w1 = _mm512_load_si512(w + MOE_VNNI_NR);
#pragma GCC unroll 8
        for (size_t m = 0; m < kRows; ++m) {
            const __m512i q = broadcast_u8x4(x[m] + 2 * k);
            sum[m][0] = _mm512_dpwssd_epi32(sum[m][0], q, w0);
            sum[m][1] = _mm512_dpwssd_epi32(sum[m][1], q, w1);
        }
    }
#pragma GCC unroll 8
    for (size_t m = 0; m < kRows; ++m) {
        if (m < mr) {
            int32_t *out = acc + m * acc_stride;
            if (!first) {
                sum[m][0] = _mm512_add_epi32(_mm512_loadu_si512(out), sum[m][0]);
                sum[m][1] = _mm512_add_epi32(_mm512_loadu_si512(out + 16), sum[m][1]);
            }
            _mm512_storeu_si512(out, sum[m][0]);
            _mm512_storeu_si512(out + 16, sum[m][1]);
        }
    }
}
