// fp32 product of router rows: up to six tokens x 16 experts over one block of d.
//
// Panel block: (kc, 16) f32, the 16 experts' weights of one d together. A single token uses four
// chains per vector instead of one, since one would wait for the latency of each FMA; no sum has more
// than kc roundings either way.
#include "rows__avx2.h"
#include "vectors__avx2.h"

static void router_1x16(size_t kc, const float *x, const float *r, int first, float *z) {
    __m256 a0 = _mm256_setzero_ps(), a1 = a0, b0 = a0, b1 = a0, c0 = a0, c1 = a0, d0 = a0, d1 = a0;
    if (!first) {
        a0 = _mm256_loadu_ps(z);
        a1 = _mm256_loadu_ps(z + 8);
    }
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
    _mm256_storeu_ps(z, _mm256_add_ps(_mm256_add_ps(a0, b0), _mm256_add_ps(c0, d0)));
    _mm256_storeu_ps(z + 8, _mm256_add_ps(_mm256_add_ps(a1, b1), _mm256_add_ps(c1, d1)));
}

// Rows beyond mr repeat the last one: they compute and store the same values again.
static void router_6x16(size_t mr, size_t kc, const float *const *rows, const float *r, int first,
                        float *z, size_t z_stride) {
#define ROW(m)                                                                                     \
    const float *x##m = rows[m < mr ? m : mr - 1];                                                 \
    float *z##m = z + (m < mr ? m : mr - 1) * z_stride;                                            \
    __m256 acc##m##0 = _mm256_setzero_ps(), acc##m##1 = acc##m##0;                                 \
    if (!first) {                                                                                  \
        acc##m##0 = _mm256_loadu_ps(z##m);                                                         \
        acc##m##1 = _mm256_loadu_ps(z##m + 8);                                                     \
    }
#define STEP(m)                                                                                    \
    {                                                                                              \
        const __m256 xm = _mm256_broadcast_ss(x##m + k);                                           \
        acc##m##0 = _mm256_fmadd_ps(xm, r0, acc##m##0);                                            \
        acc##m##1 = _mm256_fmadd_ps(xm, r1, acc##m##1);                                            \
    }
#define STORE(m)                                                                                   \
    _mm256_storeu_ps(z##m, acc##m##0);                                                             \
    _mm256_storeu_ps(z##m + 8, acc##m##1);
#define EACH_ROW(what) what(0) what(1) what(2) what(3) what(4) what(5)
    EACH_ROW(ROW)
    for (size_t k = 0; k < kc; ++k, r += 16) {
        __m256 r0 = _mm256_loadu_ps(r);
        __m256 r1 = _mm256_loadu_ps(r + 8);
        MOE_PIN(r0);
        MOE_PIN(r1);
        EACH_ROW(STEP)
    }
    EACH_ROW(STORE)
#undef EACH_ROW
#undef STORE
#undef STEP
#undef ROW
}

extern "C" void moe_f32_router_6x16__avx2(size_t mr, size_t kc, const float *const *rows,
                                          const float *panel, int first, float *z,
                                          size_t z_stride) {
    MOE_REQUIRE(mr >= 1 && mr <= 6);
    MOE_REQUIRE(kc > 0);
    MOE_REQUIRE(z_stride >= 16);
    if (mr == 1) {
        router_1x16(kc, rows[0], panel, first, z);
    } else {
        router_6x16(mr, kc, rows, panel, first, z, z_stride);
    }
}
