// int8 product, MR rows x 16 channels, k in fours: the body shared by all tiles.
//
// Exact without widening the weights: q w = |q| (w ^ m) + |q| (m & 1), where m is -1 for a negative
// q and 0 for another, since w ^ -1 = -w - 1. |q| <= 127 is the unsigned side of vpmaddubsw and
// w ^ m in -128..127 the signed one; a pair of products is at most 2 * 127 * 128 = 32512 < 2^15, so
// it does not saturate. The row brings sum over q < 0 of |q|, which the sums start from. They fit
// int32 for k <= 132104 (127 * 128 * k < 2^31).
//
// Four vector operations for 32 products, two of them multiplications, in an order that matters:
// two of a kind together reach 3.6 of four operations a cycle, one by one 3.3 (AMD Zen 4).
// Activations as two nibbles take 4.5 operations, 2.25 of them multiplications, and vpsignb on the
// weights is a third one for the multipliers' ports.
#pragma once

#include "rows__avx2.h"
#include "vectors__avx2.h"

#define MOE_INLINE inline __attribute__((always_inline))

namespace {

// Far enough to reach into the next panel, which is the next expert's at the end of one.
const size_t kNextPanelBytes = 4096;

// sum += the products of four k of a row with 16 channels. Weights come from registers when other
// rows want them too, else from memory.
#define MOE_PRODUCTS                                                                               \
    "vpxor %[w0], %[flip], %[product]\n\t"                                                         \
    "vpxor %[w1], %[flip], %[flip]\n\t"                                                            \
    "vpmaddubsw %[product], %[size], %[product]\n\t"                                               \
    "vpmaddubsw %[flip], %[size], %[flip]\n\t"                                                     \
    "vpmaddwd %[ones], %[product], %[product]\n\t"                                                 \
    "vpmaddwd %[ones], %[flip], %[flip]\n\t"                                                       \
    "vpaddd %[product], %[sum0], %[sum0]\n\t"                                                      \
    "vpaddd %[flip], %[sum1], %[sum1]"

MOE_INLINE void add_products(const uint8_t *row, const __m256i *w, __m256i ones,
                             __m256i (&sum)[2]) {
    __m256i size = broadcast_i8x4(row), flip = broadcast_i8x4(row + MOE_KR), product;
    __asm__(MOE_PRODUCTS
            : [sum0] "+x"(sum[0]), [sum1] "+x"(sum[1]), [flip] "+x"(flip), [product] "=&x"(product)
            : [size] "x"(size), [w0] "m"(w[0]), [w1] "m"(w[1]), [ones] "x"(ones));
}

MOE_INLINE void add_products(const uint8_t *row, __m256i w0, __m256i w1, __m256i ones,
                             __m256i (&sum)[2]) {
    __m256i size = broadcast_i8x4(row), flip = broadcast_i8x4(row + MOE_KR), product;
    __asm__(MOE_PRODUCTS
            : [sum0] "+x"(sum[0]), [sum1] "+x"(sum[1]), [flip] "+x"(flip), [product] "=&x"(product)
            : [size] "x"(size), [w0] "x"(w0), [w1] "x"(w1), [ones] "x"(ones));
}
#undef MOE_PRODUCTS

// Four k of all rows; at: bytes from the rows' start.
template <int MR>
MOE_INLINE void step(const uint8_t *const (&rows)[MR], size_t at, const int8_t *w, __m256i ones,
                     __m256i (&sum)[MR][2]) {
    if (MR == 1) {
        add_products(rows[0] + at, (const __m256i *)w, ones, sum[0]);
        return;
    }
    __m256i w0 = load_i8x32(w);
    __m256i w1 = load_i8x32(w + 32);
    MOE_PIN(w0);
    MOE_PIN(w1);
#pragma GCC unroll 8
    for (int m = 0; m < MR; ++m) {
        add_products(rows[m] + at, w0, w1, ones, sum[m]);
    }
}

// AHEAD: bytes from the weights at hand to those that are prefetched, 0: none. For one row, whose
// weights are read fastest, the processor's own prefetching does best unless they are in L2: with
// instructions for it, 1 KB ahead, S2 took 122 us instead of 103. For several rows it does not: 16
// tokens of 1024,512,16,4 took 1733 us without, 1535 with them (AMD Zen 4, 1 thread).
template <int MR, size_t AHEAD>
MOE_INLINE void gemm_tile(size_t kc, const void *const *rows, const void *panel, int32_t *acc,
                          size_t acc_stride) {
    static_assert(MR >= 1 && MR <= 5, "more rows do not fit sixteen registers");
    MOE_REQUIRE(kc > 0);
    MOE_REQUIRE((uintptr_t)panel % 64 == 0);
    const int8_t *w = (const int8_t *)panel;
    __m256i ones = _mm256_set1_epi16(1);
    MOE_PIN(ones);
    const uint8_t *pairs[MR];
    __m256i sum[MR][2];
#pragma GCC unroll 8
    for (int m = 0; m < MR; ++m) {
        sum[m][0] = sum[m][1] = broadcast_i8x4(rows[m]);
        pairs[m] = (const uint8_t *)rows[m] + MOE_ROW_HEAD_BYTES;
    }
    const size_t steps = moe_round_up(kc, MOE_KR) / MOE_KR;
    size_t at = 0;
    for (size_t k = 0; k < steps / 2; ++k, at += 4 * MOE_KR, w += 128) {
        if (AHEAD != 0) {
            _mm_prefetch((const char *)w + AHEAD, _MM_HINT_T0);
            _mm_prefetch((const char *)w + AHEAD + 64, _MM_HINT_T0);
        }
        step<MR>(pairs, at, w, ones, sum);
        step<MR>(pairs, at + 2 * MOE_KR, w + 64, ones, sum);
    }
    if (steps % 2 != 0) {
        step<MR>(pairs, at, w, ones, sum);
    }
#pragma GCC unroll 8
    for (int m = 0; m < MR; ++m) {
        store_i32x8(acc + m * acc_stride, sum[m][0]);
        store_i32x8(acc + m * acc_stride + 8, sum[m][1]);
    }
}

template <int MR, size_t AHEAD>
MOE_INLINE void gemm_panels(size_t kc, size_t panels, size_t panel_bytes, const void *const *rows,
                            const void *first, int32_t *acc, size_t acc_stride) {
    MOE_REQUIRE(panels > 0);
    MOE_REQUIRE(panel_bytes >= moe_round_up(kc, MOE_KR) * MOE_NR);
    MOE_REQUIRE(MR == 1 || acc_stride >= panels * MOE_NR);
    const uint8_t *panel = (const uint8_t *)first;
    for (size_t p = 0; p < panels; ++p, panel += panel_bytes, acc += MOE_NR) {
        // Multiples of the stride that are kept for all panels cost more than they spare: spills.
        __asm__("" : "+r"(acc_stride));
        gemm_tile<MR, AHEAD>(kc, rows, panel, acc, acc_stride);
    }
}

} // namespace
