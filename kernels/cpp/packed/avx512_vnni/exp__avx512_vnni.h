// e^v of sixteen floats: the polynomial, the clamps and the error of ../avx2/exp__avx2.h, whose
// results it gives bit for bit (multiplying by 2^n is exact where the result is a normal number).
#pragma once

#include <immintrin.h>

#define MOE_EACH _Pragma("GCC unroll 8") for (int i = 0; i < N; ++i)

// N vectors side by side, for the reason given there.
template <int N> static inline __attribute__((always_inline)) void exp_f32x16(__m512 (&v)[N]) {
    const __m512 log2e = _mm512_set1_ps(0x1.715476p+0f);
    const __m512 ln2_high = _mm512_set1_ps(0x1.62e400p-1f);
    const __m512 ln2_low = _mm512_set1_ps(0x1.7f7d1cp-20f);
    const __m512 shift = _mm512_set1_ps(0x1.8p+23f);
    __m512 n[N], p[N];
    MOE_EACH v[i] = _mm512_min_ps(v[i], _mm512_set1_ps(88.722f));
    MOE_EACH v[i] = _mm512_max_ps(v[i], _mm512_set1_ps(-87.336f));
    MOE_EACH n[i] = _mm512_sub_ps(_mm512_fmadd_ps(v[i], log2e, shift), shift);
    MOE_EACH v[i] = _mm512_fnmadd_ps(n[i], ln2_high, v[i]);
    MOE_EACH v[i] = _mm512_fnmadd_ps(n[i], ln2_low, v[i]);
    const __m512 p4 = _mm512_set1_ps(0x1.6a23d0p-10f);
    MOE_EACH p[i] = _mm512_fmadd_ps(p4, v[i], _mm512_set1_ps(0x1.123a20p-7f));
    MOE_EACH p[i] = _mm512_fmadd_ps(p[i], v[i], _mm512_set1_ps(0x1.5558f2p-5f));
    MOE_EACH p[i] = _mm512_fmadd_ps(p[i], v[i], _mm512_set1_ps(0x1.555492p-3f));
    MOE_EACH p[i] = _mm512_fmadd_ps(p[i], v[i], _mm512_set1_ps(0x1.fffffcp-2f));
    MOE_EACH p[i] = _mm512_fmadd_ps(_mm512_mul_ps(v[i], v[i]), p[i], v[i]);
    MOE_EACH p[i] = _mm512_add_ps(p[i], _mm512_set1_ps(1.0f));
    MOE_EACH v[i] = _mm512_scalef_ps(p[i], n[i]);
}
#undef MOE_EACH

static inline __m512 exp_f32x16(__m512 v) {
    __m512 one[1] = {v};
    exp_f32x16(one);
    return one[0];
}
