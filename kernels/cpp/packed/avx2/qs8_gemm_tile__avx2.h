// int8 product, several rows x 16 channels, k in fours: the body shared by the tiles of 2 and 3
// rows.
//
// The arithmetic is that of qs8_gemm_1x16c4__avx2.cpp: activations as two nibbles, exact for every
// int8 weight. It takes 4.5 vector operations for 32 products, 2.25 of them multiplications. Moving
// the weights' signs to the activations (|w| times vpsignb(q, w), 4 operations, but with vpsignb
// three that have two ports only) reached 69 GMAC/s where this reaches 87 (AMD Zen 4, 3.7 GHz).
#pragma once

#include "rows__avx2.h"
#include "vectors__avx2.h"

#define MOE_INLINE inline __attribute__((always_inline))

namespace {

// Far enough to reach into the next panel, which is the next expert's at the end of one.
const size_t kPrefetchBytes = 4096;
const size_t kStepsInInt16 = 8; // as in qs8_gemm_1x16c4__avx2.cpp

template <int MR> struct Nibbles {
    const uint8_t *hi[MR];
    size_t lo; // offset from hi
};

// One step of four k: 64 bytes of weights against four bytes of hi and of lo of each row.
template <int MR>
MOE_INLINE void step(const Nibbles<MR> &rows, size_t k, const int8_t *w, __m256i (&hi)[MR][2],
                     __m256i (&lo)[MR][2]) {
    __m256i w0 = load_i8x32(w);
    __m256i w1 = load_i8x32(w + 32);
    MOE_PIN(w0);
    MOE_PIN(w1);
#pragma GCC unroll 4
    for (int m = 0; m < MR; ++m) {
        const __m256i vhi = broadcast_i8x4(rows.hi[m] + k);
        const __m256i vlo = broadcast_i8x4(rows.hi[m] + rows.lo + k);
        hi[m][0] = _mm256_add_epi16(hi[m][0], _mm256_maddubs_epi16(vhi, w0));
        MOE_PIN(hi[m][0]);
        hi[m][1] = _mm256_add_epi16(hi[m][1], _mm256_maddubs_epi16(vhi, w1));
        MOE_PIN(hi[m][1]);
        lo[m][0] = _mm256_add_epi16(lo[m][0], _mm256_maddubs_epi16(vlo, w0));
        MOE_PIN(lo[m][0]);
        lo[m][1] = _mm256_add_epi16(lo[m][1], _mm256_maddubs_epi16(vlo, w1));
        MOE_PIN(lo[m][1]);
    }
}

template <int MR>
MOE_INLINE void gemm_tile(size_t kc, const void *const *rows, const void *panel, int32_t *acc,
                          size_t acc_stride) {
    static_assert(MR >= 1 && MR <= 3, "more rows do not fit sixteen registers");
    MOE_REQUIRE(kc > 0);
    MOE_REQUIRE(acc_stride >= MOE_NR);
    MOE_REQUIRE((uintptr_t)panel % 64 == 0);
    const int8_t *w = (const int8_t *)panel + MOE_CORRECTION_BYTES;
    const __m256i ones = _mm256_set1_epi16(1);
    const __m256i sixteens = _mm256_set1_epi16(16);
    Nibbles<MR> nibbles;
    nibbles.lo = moe_row_part(kc);
    __m256i sum[MR][2];
#pragma GCC unroll 4
    for (int m = 0; m < MR; ++m) {
        nibbles.hi[m] = (const uint8_t *)rows[m];
        sum[m][0] = load_i8x32(panel);
        sum[m][1] = load_i8x32((const int8_t *)panel + 32);
    }
    const size_t end = moe_round_up(kc, MOE_KR);
    for (size_t k = 0; k < end;) {
        __m256i hi[MR][2], lo[MR][2];
#pragma GCC unroll 4
        for (int m = 0; m < MR; ++m) {
            hi[m][0] = hi[m][1] = lo[m][0] = lo[m][1] = _mm256_setzero_si256();
        }
        if (end - k >= kStepsInInt16 * MOE_KR) {
#pragma GCC unroll 8
            for (size_t s = 0; s < kStepsInInt16; ++s) {
                _mm_prefetch((const char *)w + 64 * s + kPrefetchBytes, _MM_HINT_T0);
                step<MR>(nibbles, k + s * MOE_KR, w + 64 * s, hi, lo);
            }
            k += kStepsInInt16 * MOE_KR;
            w += kStepsInInt16 * 64;
        } else {
            for (; k < end; k += MOE_KR, w += 64) {
                step<MR>(nibbles, k, w, hi, lo);
            }
        }
#pragma GCC unroll 4
        for (int m = 0; m < MR; ++m) {
#pragma GCC unroll 2
            for (int half = 0; half < 2; ++half) {
                const __m256i high = _mm256_madd_epi16(hi[m][half], sixteens);
                const __m256i low = _mm256_madd_epi16(lo[m][half], ones);
                sum[m][half] = _mm256_add_epi32(sum[m][half], _mm256_add_epi32(high, low));
            }
        }
    }
#pragma GCC unroll 4
    for (int m = 0; m < MR; ++m) {
        store_i32x8(acc + m * acc_stride, sum[m][0]);
        store_i32x8(acc + m * acc_stride + 8, sum[m][1]);
    }
}

} // namespace
