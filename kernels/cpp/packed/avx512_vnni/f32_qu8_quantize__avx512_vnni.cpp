// One activation row to uint8 with an offset of 128.
//
// q = rint(v * (127 / largest)): vcvtps2dq rounds half to even in the default mode, so q is that of
// the reference bit for bit. The clamp changes no finite value; it keeps |q| <= 127 after an
// overflow.
#include "rows__avx512_vnni.h"
#include "vectors__avx512_vnni.h"

extern "C" float moe_f32_qu8_quantize__avx512_vnni(size_t n, const float *v, float largest,
                                                   void *row) {
    MOE_REQUIRE(n > 0);
    const bool vanishes = largest < 0x1p-100f;
    const __m512 factor = _mm512_set1_ps(vanishes ? 0.0f : 127.0f / largest);
    const __m512 bound = _mm512_set1_ps(127.0f);
    const __m512i offset = _mm512_set1_epi32(128);
    uint8_t *u = (uint8_t *)row;
    for (size_t i = 0; i < moe_vnni_round_up(n, MOE_VNNI_ROW_STEP); i += 16) {
        const __m512 scaled = _mm512_mul_ps(load_f32(v + i, i < n ? n - i : 0), factor);
        // A NaN becomes the bound: vminps and vmaxps return their second operand then.
        const __m512 capped = _mm512_max_ps(_mm512_min_ps(scaled, bound), _mm512_set1_ps(-127.0f));
        const __m512i q = _mm512_add_epi32(_mm512_cvtps_epi32(capped), offset);
        _mm_storeu_si128((__m128i *)(u + i), _mm512_cvtepi32_epi8(q));
    }
    return vanishes ? 0.0f : largest / 127.0f;
}
