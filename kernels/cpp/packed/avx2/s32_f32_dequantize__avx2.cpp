// int32 products of the down matrix to fp32.
#include "rows__avx2.h"
#include "vectors__avx2.h"

extern "C" void moe_s32_f32_dequantize__avx2(size_t n, const int32_t *acc, const float *scales,
                                             float h_scale, float *out) {
    MOE_REQUIRE(n % MOE_NR == 0);
    const __m256 scale = _mm256_set1_ps(h_scale);
    for (size_t i = 0; i < n; i += 8) {
        const __m256 v = _mm256_cvtepi32_ps(load_i8x32(acc + i));
        _mm256_storeu_ps(out + i,
                         _mm256_mul_ps(v, _mm256_mul_ps(scale, _mm256_loadu_ps(scales + i))));
    }
}
