// fp32 product of router rows: up to six tokens x 16 experts over one block of d.
//
// Panel block: (kc, 16) f32, the 16 experts' weights of one d together. A row's sum runs over
// the d of the block in order and is then added to z. Rows beyond mr compute the
// last one's values again and store nothing.
#include "rows__avx2.h"
#include "vectors__avx2.h"

extern "C" void moe_f32_router_6x16__avx2(size_t mr, size_t kc, const float *const *rows,
                                          const float *panel, int first, float *z,
                                          size_t z_stride) {
    MOE_REQUIRE(mr >= 1 && mr <= 6);
    MOE_REQUIRE(kc > 0);
    MOE_REQUIRE(z_stride >= 16);
    const float *r = panel;
#define ROW(m)                                                                                     \
    const float *x##m = rows[m < mr ? m : mr - 1];                                                 \
    __m256 acc##m##0 = _mm256_setzero_ps(), acc##m##1 = acc##m##0;
#define STEP(m)                                                                                    \
    {                                                                                              \
        const __m256 xm = _mm256_broadcast_ss(x##m + k);                                           \
        acc##m##0 = _mm256_fmadd_ps(xm, r0, acc##m##0);                                            \
        acc##m##1 = _mm256_fmadd_ps(xm, r1, acc##m##1);                                            \
    }
#define STORE(m)                                                                                   \
    if (m < mr) {                                                                                  \
        if (!first) {                                                                              \
            acc##m##0 = _mm256_add_ps(_mm256_loadu_ps(z + m * z_stride), acc##m##0);               \
            acc##m##1 = _mm256_add_ps(_mm256_loadu_ps(z + m * z_stride + 8), acc##m##1);           \
        }                                                                                          \
        _mm256_storeu_ps(z + m * z_stride, acc##m##0);                                             \
        _mm256_storeu_ps(z + m * z_stride + 8, acc##m##1);                                         \
    }
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
