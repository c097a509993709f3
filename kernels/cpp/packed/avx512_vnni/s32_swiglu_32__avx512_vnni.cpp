// h = SiLU(g) * u from the accumulators of dual panels (16 gate channels, then 16 of up).
#include "exp__avx512_vnni.h"
#include "rows__avx512_vnni.h"
#include "vectors__avx512_vnni.h"

extern "C" float moe_s32_swiglu_32__avx512_vnni(size_t panels, const int32_t *acc,
                                                const float *scales, float x_scale, float *h) {
    MOE_REQUIRE(panels > 0);
    const __m512 scale = _mm512_set1_ps(x_scale);
    const __m512 one = _mm512_set1_ps(1.0f);
    __m512 largest = _mm512_setzero_ps();
    for (size_t p = 0; p < panels; ++p, acc += MOE_VNNI_NR, scales += MOE_VNNI_NR, h += 16) {
        const __m512 gate_scale = _mm512_mul_ps(scale, _mm512_loadu_ps(scales));
        const __m512 up_scale = _mm512_mul_ps(scale, _mm512_loadu_ps(scales + 16));
        const __m512 g =
            _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_loadu_si512(acc)), gate_scale);
        const __m512 u =
            _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_loadu_si512(acc + 16)), up_scale);
        const __m512 e = exp_f32x16(_mm512_sub_ps(_mm512_setzero_ps(), g));
        const __m512 v = _mm512_mul_ps(_mm512_div_ps(g, _mm512_add_ps(one, e)), u);
        largest = _mm512_max_ps(largest, _mm512_abs_ps(v));
        _mm512_storeu_ps(h, v);
    }
    return _mm512_reduce_max_ps(largest);
}
