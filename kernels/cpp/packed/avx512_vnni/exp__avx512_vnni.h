// e^v of sixteen floats: the polynomial, the clamps and the error of ../avx2/exp__avx2.h, whose
// results it gives bit for bit (multiplying by 2^n is exact where the result is a normal number).
#pragma once

#include <immintrin.h>

static inline __m512 exp_f32x16(__m512 v) {
    const __m512 log2e = _mm512_set1_ps(0x1.715476p+0f);
    const __m512 ln2_high = _mm512_set1_ps(0x1.62e400p-1f);
    const __m512 ln2_low = _mm512_set1_ps(0x1.7f7d1cp-20f);
    v = _mm512_min_ps(v, _mm512_set1_ps(88.722f));
    v = _mm512_max_ps(v, _mm512_set1_ps(-87.336f));
    const __m512 shift = _mm512_set1_ps(0x1.8p+23f);
    const __m512 n = _mm512_sub_ps(_mm512_fmadd_ps(v, log2e, shift), shift);
    __m512 r = _mm512_fnmadd_ps(n, ln2_high, v);
    r = _mm512_fnmadd_ps(n, ln2_low, r);
    __m512 p = _mm512_set1_ps(0x1.6a23d0p-10f);
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0x1.123a20p-7f));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0x1.5558f2p-5f));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0x1.555492p-3f));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0x1.fffffcp-2f));
    p = _mm512_fmadd_ps(_mm512_mul_ps(r, r), p, r);
    p = _mm512_add_ps(p, _mm512_set1_ps(1.0f));
    return _mm512_scalef_ps(p, n);
}
