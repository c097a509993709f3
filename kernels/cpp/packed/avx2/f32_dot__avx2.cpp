// fp32 dot product of two rows: 32 partial sums, so at most n / 32 + 6 roundings in a row.
#include "candidates__avx2.h"
#include "rows__avx2.h"
#include "vectors__avx2.h"

extern "C" float moe_f32_dot__avx2(size_t n, const float *v, const float *w) {
    __m256 a = _mm256_setzero_ps(), b = a, c = a, d = a;
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        a = _mm256_fmadd_ps(_mm256_loadu_ps(v + i), _mm256_loadu_ps(w + i), a);
        b = _mm256_fmadd_ps(_mm256_loadu_ps(v + i + 8), _mm256_loadu_ps(w + i + 8), b);
        c = _mm256_fmadd_ps(_mm256_loadu_ps(v + i + 16), _mm256_loadu_ps(w + i + 16), c);
        d = _mm256_fmadd_ps(_mm256_loadu_ps(v + i + 24), _mm256_loadu_ps(w + i + 24), d);
    }
    for (; i < n; i += 8) {
        a = _mm256_fmadd_ps(load_f32(v + i, n - i), load_f32(w + i, n - i), a);
    }
    return sum_of_f32x8(_mm256_add_ps(_mm256_add_ps(a, b), _mm256_add_ps(c, d)));
}
