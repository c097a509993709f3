// int16 product of router rows: up to six tokens x 16 experts over one block of d, k in pairs.
//
// vpmaddwd multiplies and adds two pairs into int32; only four times -32768 would overflow it, and
// |q| <= 32767 here. Sums may wrap modulo 2^32 on the way: the caller's scales keep the final one
// below 2^31 (see router_candidates.h), so it is exact. Rows beyond mr compute the last one's
// values again and store nothing.
#include "candidates__avx2.h"
#include "rows__avx2.h"
#include "vectors__avx2.h"

extern "C" void moe_qs16_gemm_6x16c2__avx2(size_t mr, size_t pairs, const int16_t *const *rows,
                                           const int16_t *panel, int first, int32_t *acc,
                                           size_t acc_stride) {
    MOE_REQUIRE(mr >= 1 && mr <= 6);
    MOE_REQUIRE(pairs > 0);
    MOE_REQUIRE(acc_stride >= MOE_NR);
    MOE_REQUIRE((uintptr_t)panel % 64 == 0);
    const int16_t *w = panel;
#define ROW(m)                                                                                     \
    const int16_t *x##m = rows[m < mr ? m : mr - 1];                                               \
    __m256i acc##m##0 = _mm256_setzero_si256(), acc##m##1 = acc##m##0;
#define STEP(m)                                                                                    \
    {                                                                                              \
        const __m256i q = broadcast_i8x4(x##m + 2 * k);                                            \
        acc##m##0 = _mm256_add_epi32(acc##m##0, _mm256_madd_epi16(w0, q));                         \
        MOE_PIN(acc##m##0);                                                                        \
        acc##m##1 = _mm256_add_epi32(acc##m##1, _mm256_madd_epi16(w1, q));                         \
        MOE_PIN(acc##m##1);                                                                        \
    }
#define STORE(m)                                                                                   \
    if (m < mr) {                                                                                  \
        int32_t *out = acc + m * acc_stride;                                                       \
        if (!first) {                                                                              \
            acc##m##0 = _mm256_add_epi32(load_i8x32(out), acc##m##0);                              \
            acc##m##1 = _mm256_add_epi32(load_i8x32(out + 8), acc##m##1);                          \
        }                                                                                          \
        store_i32x8(out, acc##m##0);                                                               \
        store_i32x8(out + 8, acc##m##1);                                                           \
    }
#define EACH_ROW(what) what(0) what(1) what(2) what(3) what(4) what(5)
    EACH_ROW(ROW)
    for (size_t k = 0; k < pairs; ++k, w += 2 * MOE_NR) {
        __m256i w0 = load_i8x32(w);
        __m256i w1 = load_i8x32(w + MOE_NR);
        MOE_PIN(w0);
        MOE_PIN(w1);
        EACH_ROW(STEP)
    }
    EACH_ROW(STORE)
#undef EACH_ROW
#undef STORE
#undef STEP
#undef ROW
}
