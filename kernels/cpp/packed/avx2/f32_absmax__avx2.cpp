// Largest magnitude of a row.
#include "rows__avx2.h"
#include "vectors__avx2.h"

extern "C" float moe_f32_absmax__avx2(size_t n, const float *v) {
    __m256 a = _mm256_setzero_ps(), b = a, c = a, d = a;
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        a = _mm256_max_ps(a, abs_f32(_mm256_loadu_ps(v + i)));
        b = _mm256_max_ps(b, abs_f32(_mm256_loadu_ps(v + i + 8)));
        c = _mm256_max_ps(c, abs_f32(_mm256_loadu_ps(v + i + 16)));
        d = _mm256_max_ps(d, abs_f32(_mm256_loadu_ps(v + i + 24)));
    }
    for (; i < n; i += 8) {
        a = _mm256_max_ps(a, abs_f32(load_f32(v + i, n - i)));
    }
    return max_of_f32x8(_mm256_max_ps(_mm256_max_ps(a, b), _mm256_max_ps(c, d)));
}
