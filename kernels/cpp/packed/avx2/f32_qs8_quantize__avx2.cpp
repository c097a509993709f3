// One activation row to int8, in the form that rows__avx2.h describes.
//
// q = rint(v * (127 / largest)): vcvtps2dq rounds half to even in the default mode, so q is that of
// the reference bit for bit. The clamp changes no finite value; it keeps |q| <= 127 after an
// overflow.
#include "rows__avx2.h"
#include "vectors__avx2.h"

static inline __m256i to_int32(const float *v, size_t left, __m256 factor) {
    const __m256 bound = _mm256_set1_ps(127.0f);
    const __m256 scaled = _mm256_mul_ps(load_f32(v, left), factor);
    // A NaN becomes the bound: vminps and vmaxps return their second operand then.
    const __m256 capped = _mm256_min_ps(scaled, bound);
    return _mm256_cvtps_epi32(_mm256_max_ps(capped, _mm256_set1_ps(-127.0f)));
}

extern "C" float moe_f32_qs8_quantize__avx2(size_t n, const float *v, float largest, void *row) {
    MOE_REQUIRE(n > 0);
    const bool vanishes = largest < 0x1p-100f;
    const __m256 factor = _mm256_set1_ps(vanishes ? 0.0f : 127.0f / largest);
    const __m256i zero = _mm256_setzero_si256();
    uint8_t *pairs = (uint8_t *)row + MOE_ROW_HEAD_BYTES;
    __m256i below = zero;
    for (size_t i = 0; i < n; i += 32) {
        const size_t left = n - i;
        const __m256i a = to_int32(v + i, left, factor);
        const __m256i b = to_int32(v + i + 8, left > 8 ? left - 8 : 0, factor);
        const __m256i c = to_int32(v + i + 16, left > 16 ? left - 16 : 0, factor);
        const __m256i d = to_int32(v + i + 24, left > 24 ? left - 24 : 0, factor);
        const __m256i ab = _mm256_packs_epi32(a, b);
        const __m256i cd = _mm256_packs_epi32(c, d);
        // Fours of k in the order 0 2 4 6 1 3 5 7, which the permutations undo.
        const __m256i q = _mm256_packs_epi16(ab, cd);
        const __m256i size = _mm256_abs_epi8(q);
        const __m256i flip = _mm256_cmpgt_epi8(zero, q);
        below = _mm256_add_epi64(below, _mm256_sad_epu8(_mm256_and_si256(size, flip), zero));
        const __m256i first = _mm256_unpacklo_epi32(size, flip);
        const __m256i second = _mm256_unpackhi_epi32(size, flip);
        _mm256_storeu_si256((__m256i *)(pairs + 2 * i), _mm256_permute4x64_epi64(first, 0xd8));
        _mm256_storeu_si256((__m256i *)(pairs + 2 * i + 32),
                            _mm256_permute4x64_epi64(second, 0xd8));
    }
    __m128i sum = _mm_add_epi64(_mm256_castsi256_si128(below), _mm256_extracti128_si256(below, 1));
    sum = _mm_add_epi64(sum, _mm_unpackhi_epi64(sum, sum));
    const int32_t total = _mm_cvtsi128_si32(sum);
    __builtin_memcpy(row, &total, sizeof total);
    return vanishes ? 0.0f : largest / 127.0f;
}
