// One activation row to uint8 with an offset of 128.
//
// q = rint(v * (127 / largest)): vcvtps2dq rounds half to even in the default mode, so q is that of
// the reference bit for bit. The clamp changes no finite value; it keeps |q| <= 127 after an
// overflow.
#include "../avx2/vectors__avx2.h"
#include "rows__avx_vnni.h"

static inline __m256i to_int32(const float *v, size_t left, __m256 factor) {
    const __m256 scaled = _mm256_mul_ps(load_f32(v, left), factor);
    // A NaN becomes the bound: vminps and vmaxps return their second operand then.
    const __m256 capped = _mm256_min_ps(scaled, _mm256_set1_ps(127.0f));
    return _mm256_cvtps_epi32(_mm256_max_ps(capped, _mm256_set1_ps(-127.0f)));
}

extern "C" float moe_f32_qu8_quantize__avx_vnni(size_t n, const float *v, float largest,
                                                void *row) {
    MOE_REQUIRE(n > 0);
    const bool vanishes = largest < 0x1p-100f;
    const __m256 factor = _mm256_set1_ps(vanishes ? 0.0f : 127.0f / largest);
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    uint8_t *u = (uint8_t *)row;
    for (size_t i = 0; i < n; i += MOE_ROW_STEP) {
        const size_t left = n - i;
        const __m256i a = to_int32(v + i, left, factor);
        const __m256i b = to_int32(v + i + 8, left > 8 ? left - 8 : 0, factor);
        const __m256i c = to_int32(v + i + 16, left > 16 ? left - 16 : 0, factor);
        const __m256i d = to_int32(v + i + 24, left > 24 ? left - 24 : 0, factor);
        const __m256i ab = _mm256_packs_epi32(a, b);
        const __m256i cd = _mm256_packs_epi32(c, d);
        const __m256i bytes = _mm256_permutevar8x32_epi32(_mm256_packs_epi16(ab, cd), order);
        _mm256_storeu_si256((__m256i *)(u + i),
                            _mm256_xor_si256(bytes, _mm256_set1_epi8(-128)));
    }
    return vanishes ? 0.0f : largest / 127.0f;
}
