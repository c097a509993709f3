// int8 product, one row x 16 channels, k in fours: weights stream from memory once. The processor's
// own prefetching does best: with instructions for it, 2 KB ahead, S2 took 126 us instead of 114
// (AMD Zen 4, 1 thread).
//
// Exact without widening the weights: q + 128 = 16 hi + lo with hi, lo in 0..15 is the unsigned
// side of vpmaddubsw, the weights are the signed side. A pair of products is at most 2 * 15 * 128 =
// 3840, eight of them at most 30720 < 2^15, so eight steps are summed in int16 before they are
// widened. acc = 16 * sum(hi w) + sum(lo w) - 128 * sum(w); the last term is stored with the panel.
// Sums wrap modulo 2^32 on the way, the result fits int32 for k <= 131072 (127 * 128 * k < 2^31).
#include "rows__avx2.h"
#include "vectors__avx2.h"

static const size_t kStepsInInt16 = 8;

// One step of four k: 64 bytes of weights against four bytes of hi and of lo.
#define STEP(offset)                                                                               \
    {                                                                                              \
        __m256i w0 = load_i8x32(w + 16 * (offset));                                                \
        __m256i w1 = load_i8x32(w + 16 * (offset) + 32);                                           \
        MOE_PIN(w0);                                                                               \
        MOE_PIN(w1);                                                                               \
        const __m256i vhi = broadcast_i8x4(hi + (offset));                                         \
        const __m256i vlo = broadcast_i8x4(lo + (offset));                                         \
        hi0 = _mm256_add_epi16(hi0, _mm256_maddubs_epi16(vhi, w0));                                \
        hi1 = _mm256_add_epi16(hi1, _mm256_maddubs_epi16(vhi, w1));                                \
        lo0 = _mm256_add_epi16(lo0, _mm256_maddubs_epi16(vlo, w0));                                \
        lo1 = _mm256_add_epi16(lo1, _mm256_maddubs_epi16(vlo, w1));                                \
        MOE_PIN(hi0);                                                                              \
        MOE_PIN(hi1);                                                                              \
        MOE_PIN(lo0);                                                                              \
        MOE_PIN(lo1);                                                                              \
    }

extern "C" void moe_qs8_gemm_1x16c4__avx2(size_t kc, const void *const *rows, const void *panel,
                                          int32_t *acc, size_t) {
    MOE_REQUIRE(kc > 0);
    MOE_REQUIRE((uintptr_t)panel % 64 == 0);
    const uint8_t *hi = (const uint8_t *)rows[0];
    const uint8_t *lo = hi + moe_row_part(kc);
    const int8_t *w = (const int8_t *)panel + MOE_CORRECTION_BYTES;
    const __m256i ones = _mm256_set1_epi16(1);
    const __m256i sixteens = _mm256_set1_epi16(16);
    __m256i acc0 = load_i8x32(panel);
    __m256i acc1 = load_i8x32((const int8_t *)panel + 32);

    size_t steps = moe_round_up(kc, MOE_KR) / MOE_KR;
    while (steps != 0) {
        __m256i hi0 = _mm256_setzero_si256(), hi1 = hi0, lo0 = hi0, lo1 = hi0;
        if (steps >= kStepsInInt16) {
#pragma GCC unroll 8
            for (size_t k = 0; k < kStepsInInt16 * MOE_KR; k += MOE_KR) {
                STEP(k)
            }
            w += kStepsInInt16 * 64;
            hi += kStepsInInt16 * MOE_KR;
            lo += kStepsInInt16 * MOE_KR;
            steps -= kStepsInInt16;
        } else {
            for (; steps != 0; --steps, w += 64, hi += MOE_KR, lo += MOE_KR) {
                STEP(0)
            }
        }
        acc0 = _mm256_add_epi32(acc0, _mm256_madd_epi16(hi0, sixteens));
        acc1 = _mm256_add_epi32(acc1, _mm256_madd_epi16(hi1, sixteens));
        acc0 = _mm256_add_epi32(acc0, _mm256_madd_epi16(lo0, ones));
        acc1 = _mm256_add_epi32(acc1, _mm256_madd_epi16(lo1, ones));
    }
    store_i32x8(acc, acc0);
    store_i32x8(acc + 8, acc1);
}
