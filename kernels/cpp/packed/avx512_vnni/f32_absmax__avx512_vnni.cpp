// Largest magnitude of a row.
#include "rows__avx512_vnni.h"
#include "vectors__avx512_vnni.h"

extern "C" float moe_f32_absmax__avx512_vnni(size_t n, const float *v) {
    __m512 a = _mm512_setzero_ps(), b = a, c = a, d = a;
    size_t i = 0;
    for (; i + 64 <= n; i += 64) {
        a = _mm512_max_ps(a, _mm512_abs_ps(_mm512_loadu_ps(v + i)));
        b = _mm512_max_ps(b, _mm512_abs_ps(_mm512_loadu_ps(v + i + 16)));
        c = _mm512_max_ps(c, _mm512_abs_ps(_mm512_loadu_ps(v + i + 32)));
        d = _mm512_max_ps(d, _mm512_abs_ps(_mm512_loadu_ps(v + i + 48)));
    }
    for (; i < n; i += 16) {
        a = _mm512_max_ps(a, _mm512_abs_ps(load_f32(v + i, n - i)));
    }
    return _mm512_reduce_max_ps(_mm512_max_ps(_mm512_max_ps(a, b), _mm512_max_ps(c, d)));
}
