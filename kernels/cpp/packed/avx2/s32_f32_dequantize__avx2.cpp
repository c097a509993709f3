// int32 products of the down matrix to fp32, a tile at a time.
#include "rows__avx2.h"
#include "vectors__avx2.h"

extern "C" void moe_s32_f32_dequantize__avx2(size_t mr, size_t n, const int32_t *acc,
                                             size_t acc_stride, const float *scales,
                                             const float *h_scale, size_t offset,
                                             float *const *out) {
    MOE_REQUIRE(n % MOE_NR == 0);
    for (size_t m = 0; m < mr; ++m) {
        const __m256 scale = _mm256_broadcast_ss(h_scale + m);
        for (size_t c = 0; c < n; c += 8) {
            const __m256 v = _mm256_cvtepi32_ps(load_i8x32(acc + m * acc_stride + c));
            const __m256 factor = _mm256_mul_ps(scale, _mm256_loadu_ps(scales + offset + c));
            _mm256_storeu_ps(out[m] + offset + c, _mm256_mul_ps(v, factor));
        }
    }
}
