// y = x + sum of gates[i] * parts[i], multiply then add, in the order given.
#include "rows__avx2.h"
#include "vectors__avx2.h"

extern "C" void moe_f32_combine__avx2(size_t n, const float *x, const float *const *parts,
                                      const float *gates, size_t count, float *y) {
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        __m256 a = x == NULL ? _mm256_setzero_ps() : _mm256_loadu_ps(x + i);
        __m256 b = x == NULL ? _mm256_setzero_ps() : _mm256_loadu_ps(x + i + 8);
        for (size_t p = 0; p < count; ++p) {
            const __m256 gate = _mm256_broadcast_ss(gates + p);
            a = _mm256_add_ps(a, _mm256_mul_ps(gate, _mm256_loadu_ps(parts[p] + i)));
            b = _mm256_add_ps(b, _mm256_mul_ps(gate, _mm256_loadu_ps(parts[p] + i + 8)));
        }
        _mm256_storeu_ps(y + i, a);
        _mm256_storeu_ps(y + i + 8, b);
    }
    for (; i < n; i += 8) {
        const size_t left = n - i;
        __m256 a = x == NULL ? _mm256_setzero_ps() : load_f32(x + i, left);
        for (size_t p = 0; p < count; ++p) {
            const __m256 gate = _mm256_broadcast_ss(gates + p);
            a = _mm256_add_ps(a, _mm256_mul_ps(gate, load_f32(parts[p] + i, left)));
        }
        store_f32(y + i, left, a);
    }
}
