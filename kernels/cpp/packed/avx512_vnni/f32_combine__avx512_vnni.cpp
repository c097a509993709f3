// y = x + sum of gates[i] * parts[i], multiply then add, in the order given.
#include "rows__avx512_vnni.h"
#include "vectors__avx512_vnni.h"

extern "C" void moe_f32_combine__avx512_vnni(size_t n, const float *x, const float *const *parts,
                                             const float *gates, size_t count, float *y) {
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        __m512 a = x == NULL ? _mm512_setzero_ps() : _mm512_loadu_ps(x + i);
        __m512 b = x == NULL ? _mm512_setzero_ps() : _mm512_loadu_ps(x + i + 16);
        for (size_t p = 0; p < count; ++p) {
            const __m512 gate = _mm512_set1_ps(gates[p]);
            a = _mm512_add_ps(a, _mm512_mul_ps(gate, _mm512_loadu_ps(parts[p] + i)));
            b = _mm512_add_ps(b, _mm512_mul_ps(gate, _mm512_loadu_ps(parts[p] + i + 16)));
        }
        _mm512_storeu_ps(y + i, a);
        _mm512_storeu_ps(y + i + 16, b);
    }
    for (; i < n; i += 16) {
        const size_t left = n - i;
        __m512 a = x == NULL ? _mm512_setzero_ps() : load_f32(x + i, left);
        for (size_t p = 0; p < count; ++p) {
            const __m512 gate = _mm512_set1_ps(gates[p]);
            a = _mm512_add_ps(a, _mm512_mul_ps(gate, load_f32(parts[p] + i, left)));
        }
        store_f32(y + i, left, a);
    }
}
