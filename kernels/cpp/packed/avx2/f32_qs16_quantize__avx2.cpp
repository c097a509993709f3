// One token to int16 by a given factor, and the squares of what rounding left over.
//
// t = fl(v * factor), q = rint(t) half to even; t - q is exact in fp32 (both are multiples of t's
// last place and differ by at most 1/2), so that only the sum of squares rounds.
#include "candidates__avx2.h"
#include "rows__avx2.h"
#include "vectors__avx2.h"

extern "C" float moe_f32_qs16_quantize__avx2(size_t n, const float *v, float factor,
                                             int16_t *row) {
    MOE_REQUIRE(n > 0);
    const __m256 f = _mm256_set1_ps(factor);
    __m256 left_a = _mm256_setzero_ps(), left_b = left_a;
    for (size_t i = 0; i < n; i += 16) {
        const size_t left = n - i;
        const __m256 a = _mm256_mul_ps(load_f32(v + i, left), f);
        const __m256 b = _mm256_mul_ps(load_f32(v + i + 8, left > 8 ? left - 8 : 0), f);
        const __m256i qa = _mm256_cvtps_epi32(a), qb = _mm256_cvtps_epi32(b);
        const __m256 ra = _mm256_sub_ps(a, _mm256_cvtepi32_ps(qa));
        const __m256 rb = _mm256_sub_ps(b, _mm256_cvtepi32_ps(qb));
        left_a = _mm256_fmadd_ps(ra, ra, left_a);
        left_b = _mm256_fmadd_ps(rb, rb, left_b);
        const __m256i packed = _mm256_packs_epi32(qa, qb);
        store_i32x8((int32_t *)(row + i), _mm256_permute4x64_epi64(packed, 0xd8));
    }
    return sum_of_f32x8(_mm256_add_ps(left_a, left_b));
}
