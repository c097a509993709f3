// One token to int16 by a given factor, its high and low bytes apart, and the squares of what rounding left
// over: the values are those of ../avx2/f32_qs16_quantize__avx2.cpp.
#include "../avx512_vnni/vectors__avx512_vnni.h"
#include "candidates__amx_int8.h"

extern "C" float moe_f32_qs16_quantize__amx_int8(size_t n, const float *v, float factor,
                                                 int16_t *row) {
    MOE_REQUIRE(n > 0);
    const __m512 f = _mm512_set1_ps(factor);
    __m512 left = _mm512_setzero_ps();
    uint8_t *bytes = (uint8_t *)row;
    for (size_t i = 0; i < moe_vnni_round_up(n, MOE_AMX_KR); i += 16) {
        const __m512 scaled = _mm512_mul_ps(load_f32(v + i, i < n ? n - i : 0), f);
        const __m512i q = _mm512_cvtps_epi32(scaled);
        const __m512 rest = _mm512_sub_ps(scaled, _mm512_cvtepi32_ps(q));
        left = _mm512_fmadd_ps(rest, rest, left);
        uint8_t *high = bytes + i / MOE_AMX_KR * 2 * MOE_AMX_KR + i % MOE_AMX_KR;
        _mm_storeu_si128((__m128i *)high, _mm512_cvtepi32_epi8(_mm512_srai_epi32(q, 8)));
        _mm_storeu_si128((__m128i *)(high + MOE_AMX_KR), _mm512_cvtepi32_epi8(q));
    }
    return _mm512_reduce_add_ps(left);
}
