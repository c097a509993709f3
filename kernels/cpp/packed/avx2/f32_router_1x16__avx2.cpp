// fp32 product of router rows: one token x 16 experts over one block of d.
//
// Four chains per vector, since one would wait for the latency of each FMA; they are added at the
// end, and their sum to z. Panel block as in f32_router_6x16__avx2.cpp.
#include "rows__avx2.h"
#include "vectors__avx2.h"

extern "C" void moe_f32_router_1x16__avx2(size_t mr, size_t kc, const float *const *rows,
                                          const float *panel, int first, float *z, size_t) {
    MOE_REQUIRE(mr == 1);
    MOE_REQUIRE(kc > 0);
    (void)mr;
    const float *x = rows[0];
    const float *r = panel;
    __m256 a0 = _mm256_setzero_ps(), a1 = a0, b0 = a0, b1 = a0, c0 = a0, c1 = a0, d0 = a0, d1 = a0;
    size_t k = 0;
    for (; k + 4 <= kc; k += 4, r += 64) {
        const __m256 x0 = _mm256_broadcast_ss(x + k), x1 = _mm256_broadcast_ss(x + k + 1);
        const __m256 x2 = _mm256_broadcast_ss(x + k + 2), x3 = _mm256_broadcast_ss(x + k + 3);
        a0 = _mm256_fmadd_ps(x0, _mm256_loadu_ps(r), a0);
        a1 = _mm256_fmadd_ps(x0, _mm256_loadu_ps(r + 8), a1);
        b0 = _mm256_fmadd_ps(x1, _mm256_loadu_ps(r + 16), b0);
        b1 = _mm256_fmadd_ps(x1, _mm256_loadu_ps(r + 24), b1);
        c0 = _mm256_fmadd_ps(x2, _mm256_loadu_ps(r + 32), c0);
        c1 = _mm256_fmadd_ps(x2, _mm256_loadu_ps(r + 40), c1);
        d0 = _mm256_fmadd_ps(x3, _mm256_loadu_ps(r + 48), d0);
        d1 = _mm256_fmadd_ps(x3, _mm256_loadu_ps(r + 56), d1);
    }
    for (; k < kc; ++k, r += 16) {
        const __m256 x0 = _mm256_broadcast_ss(x + k);
        a0 = _mm256_fmadd_ps(x0, _mm256_loadu_ps(r), a0);
        a1 = _mm256_fmadd_ps(x0, _mm256_loadu_ps(r + 8), a1);
    }
    a0 = _mm256_add_ps(_mm256_add_ps(a0, b0), _mm256_add_ps(c0, d0));
    a1 = _mm256_add_ps(_mm256_add_ps(a1, b1), _mm256_add_ps(c1, d1));
    if (!first) {
        a0 = _mm256_add_ps(_mm256_loadu_ps(z), a0);
        a1 = _mm256_add_ps(_mm256_loadu_ps(z + 8), a1);
    }
    _mm256_storeu_ps(z, a0);
    _mm256_storeu_ps(z + 8, a1);
}
