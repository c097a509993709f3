// Sum of squares of a row, for the error bound of the router (see route.h): relative error below
// (n / 32 + 8) * 2^-24, infinite when it overflows.
#include "rows__avx2.h"
#include "vectors__avx2.h"

extern "C" float moe_f32_sum_squares__avx2(size_t n, const float *v) {
    __m256 a = _mm256_setzero_ps(), b = a, c = a, d = a;
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        const __m256 v0 = _mm256_loadu_ps(v + i), v1 = _mm256_loadu_ps(v + i + 8);
        const __m256 v2 = _mm256_loadu_ps(v + i + 16), v3 = _mm256_loadu_ps(v + i + 24);
        a = _mm256_fmadd_ps(v0, v0, a);
        b = _mm256_fmadd_ps(v1, v1, b);
        c = _mm256_fmadd_ps(v2, v2, c);
        d = _mm256_fmadd_ps(v3, v3, d);
    }
    for (; i < n; i += 8) {
        const __m256 v0 = load_f32(v + i, n - i);
        a = _mm256_fmadd_ps(v0, v0, a);
    }
    return sum_of_f32x8(_mm256_add_ps(_mm256_add_ps(a, b), _mm256_add_ps(c, d)));
}
