// int8 product, several rows x 16 channels, k in fours: the body shared by the tiles of 2..4 rows.
//
// Exact for every int8 weight: the unsigned side of vpmaddubsw is |w| (128 fits), the signed side
// is q with the sign of w (vpsignb; 0 for w = 0), which stays in -127..127. A pair of products is
// at most 2 * 128 * 127 = 32512 < 2^15: nothing saturates, and vpmaddwd with ones widens it to
// int32.
#pragma once

#include "rows__avx2.h"
#include "vectors__avx2.h"

namespace {

// Far enough to reach into the next panel, which is the next expert's at the end of one.
const size_t kPrefetchBytes = 4096;

template <int MR>
inline void gemm_tile(size_t kc, const void *const *rows, const void *panel, int32_t *acc,
                      size_t acc_stride) {
    static_assert(MR >= 1 && MR <= 4, "more rows do not fit sixteen registers");
    MOE_REQUIRE(kc > 0);
    MOE_REQUIRE(acc_stride >= MOE_NR);
    MOE_REQUIRE((uintptr_t)panel % 64 == 0);
    const int8_t *row0 = (const int8_t *)rows[0];
    const int8_t *row1 = (const int8_t *)rows[MR > 1 ? 1 : 0];
    const int8_t *row2 = (const int8_t *)rows[MR > 2 ? 2 : 0];
    const int8_t *row3 = (const int8_t *)rows[MR > 3 ? 3 : 0];
    const int8_t *w = (const int8_t *)panel + MOE_CORRECTION_BYTES;
    const __m256i ones = _mm256_set1_epi16(1);
    __m256i acc00 = _mm256_setzero_si256(), acc01 = acc00, acc10 = acc00, acc11 = acc00;
    __m256i acc20 = acc00, acc21 = acc00, acc30 = acc00, acc31 = acc00;

#define ROW(m)                                                                                     \
    if (MR > m) {                                                                                  \
        const __m256i q = broadcast_i8x4(row##m + k);                                              \
        const __m256i p0 = _mm256_maddubs_epi16(abs0, _mm256_sign_epi8(q, w0));                    \
        acc##m##0 = _mm256_add_epi32(acc##m##0, _mm256_madd_epi16(p0, ones));                      \
        MOE_PIN(acc##m##0);                                                                        \
        const __m256i p1 = _mm256_maddubs_epi16(abs1, _mm256_sign_epi8(q, w1));                    \
        acc##m##1 = _mm256_add_epi32(acc##m##1, _mm256_madd_epi16(p1, ones));                      \
        MOE_PIN(acc##m##1);                                                                        \
    }
    for (size_t k = 0; k < kc; k += MOE_KR, w += 64) {
        _mm_prefetch((const char *)w + kPrefetchBytes, _MM_HINT_T0);
        const __m256i w0 = load_i8x32(w);
        const __m256i w1 = load_i8x32(w + 32);
        __m256i abs0 = _mm256_abs_epi8(w0);
        __m256i abs1 = _mm256_abs_epi8(w1);
        MOE_PIN(abs0);
        MOE_PIN(abs1);
        ROW(0)
        ROW(1)
        ROW(2)
        ROW(3)
    }
#undef ROW

#define STORE(m)                                                                                   \
    if (MR > m) {                                                                                  \
        store_i32x8(acc + m * acc_stride, acc##m##0);                                              \
        store_i32x8(acc + m * acc_stride + 8, acc##m##1);                                          \
    }
    STORE(0)
    STORE(1)
    STORE(2)
    STORE(3)
#undef STORE
}

} // namespace
