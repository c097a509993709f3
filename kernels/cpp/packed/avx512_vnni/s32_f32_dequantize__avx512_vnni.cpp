// int32 products of the down matrix to fp32, a tile at a time.
#include "rows__avx512_vnni.h"
#include "vectors__avx512_vnni.h"

extern "C" void moe_s32_f32_dequantize__avx512_vnni(size_t mr, size_t n, const int32_t *acc,
                                                    size_t acc_stride, const float *scales,
                                                    const float *h_scale, size_t offset,
                                                    float *const *out) {
    MOE_REQUIRE(n % MOE_VNNI_NR == 0);
    for (size_t m = 0; m < mr; ++m) {
        const __m512 scale = _mm512_set1_ps(h_scale[m]);
        for (size_t c = 0; c < n; c += 16) {
            const __m512 v = _mm512_cvtepi32_ps(_mm512_loadu_si512(acc + m * acc_stride + c));
            const __m512 factor = _mm512_mul_ps(scale, _mm512_loadu_ps(scales + offset + c));
            _mm512_storeu_ps(out[m] + offset + c, _mm512_mul_ps(v, factor));
        }
    }
}
