// h = SiLU(g) * u from the accumulators of dual panels (8 gate channels, then 8 of up).
#include "exp__avx2.h"
#include "rows__avx2.h"
#include "vectors__avx2.h"

#define MOE_EACH _Pragma("GCC unroll 8") for (int i = 0; i < N; ++i)

// N dual panels; returns their largest |h| by lane, or `largest` where that is more.
template <int N>
static inline __attribute__((always_inline)) __m256
swiglu(const int32_t *acc, const float *scales, __m256 x_scale, __m256 largest, float *h) {
    __m256 g[N], u[N], e[N];
    MOE_EACH {
        const __m256 scale = _mm256_mul_ps(x_scale, _mm256_loadu_ps(scales + i * MOE_NR));
        g[i] = _mm256_mul_ps(_mm256_cvtepi32_ps(load_i8x32(acc + i * MOE_NR)), scale);
    }
    MOE_EACH {
        const __m256 scale = _mm256_mul_ps(x_scale, _mm256_loadu_ps(scales + i * MOE_NR + 8));
        u[i] = _mm256_mul_ps(_mm256_cvtepi32_ps(load_i8x32(acc + i * MOE_NR + 8)), scale);
    }
    MOE_EACH e[i] = _mm256_sub_ps(_mm256_setzero_ps(), g[i]);
    exp_f32x8(e);
    MOE_EACH e[i] = _mm256_div_ps(g[i], _mm256_add_ps(_mm256_set1_ps(1.0f), e[i]));
    MOE_EACH {
        const __m256 v = _mm256_mul_ps(e[i], u[i]);
        largest = _mm256_max_ps(largest, abs_f32(v));
        _mm256_storeu_ps(h + i * (MOE_NR / 2), v);
    }
    return largest;
}
#undef MOE_EACH

extern "C" float moe_s32_swiglu_16__avx2(size_t panels, const int32_t *acc, const float *scales,
                                         float x_scale, float *h) {
    MOE_REQUIRE(panels > 0);
    const __m256 scale = _mm256_set1_ps(x_scale);
    __m256 largest = _mm256_setzero_ps();
    size_t p = 0;
    for (; p + 4 <= panels; p += 4) {
        largest = swiglu<4>(acc + p * MOE_NR, scales + p * MOE_NR, scale, largest,
                            h + p * (MOE_NR / 2));
    }
    for (; p < panels; ++p) {
        largest = swiglu<1>(acc + p * MOE_NR, scales + p * MOE_NR, scale, largest,
                            h + p * (MOE_NR / 2));
    }
    return max_of_f32x8(largest);
}
