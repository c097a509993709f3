// h = SiLU(g) * u from the accumulators of dual panels (16 gate channels, then 16 of up).
#include "exp__avx512_vnni.h"
#include "rows__avx512_vnni.h"
#include "vectors__avx512_vnni.h"

#define MOE_EACH _Pragma("GCC unroll 8") for (int i = 0; i < N; ++i)

// N dual panels; returns their largest |h| by lane, or `largest` where that is more.
template <int N>
static inline __attribute__((always_inline)) __m512
swiglu(const int32_t *acc, const float *scales, __m512 x_scale, __m512 largest, float *h) {
    __m512 g[N], u[N], e[N];
    MOE_EACH {
        const int32_t *gate = acc + i * MOE_VNNI_NR;
        const __m512 scale = _mm512_mul_ps(x_scale, _mm512_loadu_ps(scales + i * MOE_VNNI_NR));
        g[i] = _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_loadu_si512(gate)), scale);
    }
    MOE_EACH {
        const int32_t *up = acc + i * MOE_VNNI_NR + 16;
        const __m512 scale =
            _mm512_mul_ps(x_scale, _mm512_loadu_ps(scales + i * MOE_VNNI_NR + 16));
        u[i] = _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_loadu_si512(up)), scale);
    }
    MOE_EACH e[i] = _mm512_sub_ps(_mm512_setzero_ps(), g[i]);
    exp_f32x16(e);
    MOE_EACH e[i] = _mm512_div_ps(g[i], _mm512_add_ps(_mm512_set1_ps(1.0f), e[i]));
    MOE_EACH {
        const __m512 v = _mm512_mul_ps(e[i], u[i]);
        largest = _mm512_max_ps(largest, _mm512_abs_ps(v));
        _mm512_storeu_ps(h + i * (MOE_VNNI_NR / 2), v);
    }
    return largest;
}
#undef MOE_EACH

extern "C" float moe_s32_swiglu_32__avx512_vnni(size_t panels, const int32_t *acc,
                                                const float *scales, float x_scale, float *h) {
    MOE_REQUIRE(panels > 0);
    const __m512 scale = _mm512_set1_ps(x_scale);
    __m512 largest = _mm512_setzero_ps();
    size_t p = 0;
    for (; p + 4 <= panels; p += 4) {
        largest = swiglu<4>(acc + p * MOE_VNNI_NR, scales + p * MOE_VNNI_NR, scale, largest,
                            h + p * (MOE_VNNI_NR / 2));
    }
    for (; p < panels; ++p) {
        largest = swiglu<1>(acc + p * MOE_VNNI_NR, scales + p * MOE_VNNI_NR, scale, largest,
                            h + p * (MOE_VNNI_NR / 2));
    }
    return _mm512_reduce_max_ps(largest);
}
