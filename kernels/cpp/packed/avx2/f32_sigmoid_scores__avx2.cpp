// Affinities and biased scores of one token over all experts.
//
// affinity = 1 / (1 + e^-z) is within 4 * 2^-24 of the exact sigmoid: 1 ulp of exp (with its slope
// at most 1/4), half an ulp of the sum and of the quotient each. Where e^-z is clamped, both are 0
// in fp32 terms (2.9e-39 against less).
#include "exp__avx2.h"
#include "rows__avx2.h"
#include "vectors__avx2.h"

extern "C" int moe_f32_sigmoid_scores__avx2(size_t n, const float *z, const float *bias,
                                            float *affinity, float *score) {
    const __m256 one = _mm256_set1_ps(1.0f);
    const __m256 largest_finite = _mm256_set1_ps(0x1.fffffep+127f);
    __m256 finite = _mm256_castsi256_ps(_mm256_set1_epi32(-1));
    for (size_t i = 0; i < n; i += 8) {
        const size_t left = n - i;
        const __m256 v = load_f32(z + i, left);
        finite = _mm256_and_ps(finite, _mm256_cmp_ps(abs_f32(v), largest_finite, _CMP_LE_OQ));
        const __m256 e = exp_f32x8(_mm256_sub_ps(_mm256_setzero_ps(), v));
        const __m256 a = _mm256_div_ps(one, _mm256_add_ps(one, e));
        store_f32(affinity + i, left, a);
        store_f32(score + i, left, _mm256_add_ps(a, load_f32(bias + i, left)));
    }
    return _mm256_movemask_ps(finite) == 0xff;
}
