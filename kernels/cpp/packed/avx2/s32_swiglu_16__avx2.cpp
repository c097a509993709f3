// h = SiLU(g) * u from the accumulators of dual panels (8 gate channels, then 8 of up).
#include "exp__avx2.h"
#include "rows__avx2.h"
#include "vectors__avx2.h"

extern "C" float moe_s32_swiglu_16__avx2(size_t panels, const int32_t *acc, const float *scales,
                                         float x_scale, float *h) {
    MOE_REQUIRE(panels > 0);
    const __m256 scale = _mm256_set1_ps(x_scale);
    const __m256 one = _mm256_set1_ps(1.0f);
    __m256 largest = _mm256_setzero_ps();
    for (size_t p = 0; p < panels; ++p, acc += MOE_NR, scales += MOE_NR, h += MOE_NR / 2) {
        const __m256 gate_scale = _mm256_mul_ps(scale, _mm256_loadu_ps(scales));
        const __m256 up_scale = _mm256_mul_ps(scale, _mm256_loadu_ps(scales + 8));
        const __m256 g = _mm256_mul_ps(_mm256_cvtepi32_ps(load_i8x32(acc)), gate_scale);
        const __m256 u = _mm256_mul_ps(_mm256_cvtepi32_ps(load_i8x32(acc + 8)), up_scale);
        const __m256 e = exp_f32x8(_mm256_sub_ps(_mm256_setzero_ps(), g));
        const __m256 v = _mm256_mul_ps(_mm256_div_ps(g, _mm256_add_ps(one, e)), u);
        largest = _mm256_max_ps(largest, abs_f32(v));
        _mm256_storeu_ps(h, v);
    }
    return max_of_f32x8(largest);
}
