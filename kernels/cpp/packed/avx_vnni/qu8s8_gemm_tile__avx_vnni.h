// int8 product, MR rows x 16 channels, k in fours: the body shared by all tiles.
//
// A step of six rows takes 12 vpdpbusd for 384 products, 2 loads and 6 broadcasts: 15 of the sixteen
// registers, and as many loads as the two multiplying ports leave time for. Few rows have few
// accumulators, each a chain of vpdpbusd with a latency of 5 cycles at two instructions a cycle
// (Golden Cove); CHAINS independent sums over k keep at least ten in flight. They start at the
// panel's correction and at zero, and are added at the end. Four and five rows, whose chains would not
// fit the registers, are two and three after another over each panel, which L1 holds then: 56 and 55
// multiply-adds a cycle by llvm-mca (alderlake) instead of 37 and 46.
#pragma once

#include "../avx2/vectors__avx2.h"
#include "rows__avx_vnni.h"

namespace {

// Far enough to reach into the next panel, which is the next expert's at the end of one. One row
// reads faster without: the processor's own prefetch has only one stream to follow then.
const size_t kPrefetchBytes = 4096;

template <int MR> constexpr int chains() { return MR == 6 ? 1 : MR == 3 ? 2 : MR == 2 ? 3 : 5; }

template <int MR>
__attribute__((always_inline)) inline void
gemm_tile(size_t kc, const void *const *rows, const void *panel, int32_t *acc, size_t acc_stride) {
    static_assert((MR >= 1 && MR <= 3) || MR == 6, "others have too few chains or registers");
    constexpr int CHAINS = chains<MR>();
    MOE_REQUIRE(kc > 0);
    MOE_REQUIRE(MR == 1 || acc_stride >= MOE_NR);
    MOE_REQUIRE((uintptr_t)panel % 64 == 0);
    const int8_t *w = (const int8_t *)panel + MOE_CORRECTION_BYTES;
    const uint8_t *x[MR];
    __m256i sum[CHAINS][MR][2];
#pragma GCC unroll 6
    for (int m = 0; m < MR; ++m) {
        x[m] = (const uint8_t *)rows[m];
        sum[0][m][0] = load_i8x32(panel);
        sum[0][m][1] = load_i8x32((const int8_t *)panel + 32);
#pragma GCC unroll 5
        for (int c = 1; c < CHAINS; ++c) {
            sum[c][m][0] = sum[c][m][1] = _mm256_setzero_si256();
        }
    }
    const size_t steps = moe_round_up(kc, MOE_KR) / MOE_KR;
    size_t step = 0;
    for (; step + CHAINS <= steps; step += CHAINS) {
#pragma GCC unroll 5
        for (int c = 0; c < CHAINS; ++c, w += 64) {
            if (MR > 1) {
                _mm_prefetch((const char *)w + kPrefetchBytes, _MM_HINT_T0);
            }
            __m256i w0 = load_i8x32(w);
            __m256i w1 = load_i8x32(w + 32);
            MOE_PIN(w0);
            MOE_PIN(w1);
#pragma GCC unroll 6
            for (int m = 0; m < MR; ++m) {
                const __m256i u = broadcast_i8x4(x[m] + MOE_KR * (step + c));
                sum[c][m][0] = _mm256_dpbusd_avx_epi32(sum[c][m][0], u, w0);
                MOE_PIN(sum[c][m][0]);
                sum[c][m][1] = _mm256_dpbusd_avx_epi32(sum[c][m][1], u, w1);
                MOE_PIN(sum[c][m][1]);
            }
        }
    }
    for (; step < steps; ++step, w += 64) {
        const __m256i w0 = load_i8x32(w);
        const __m256i w1 = load_i8x32(w + 32);
#pragma GCC unroll 6
        for (int m = 0; m < MR; ++m) {
            const __m256i u = broadcast_i8x4(x[m] + MOE_KR * step);
            sum[0][m][0] = _mm256_dpbusd_avx_epi32(sum[0][m][0], u, w0);
            sum[0][m][1] = _mm256_dpbusd_avx_epi32(sum[0][m][1], u, w1);
        }
    }
#pragma GCC unroll 6
    for (int m = 0; m < MR; ++m) {
#pragma GCC unroll 5
        for (int c = 1; c < CHAINS; ++c) {
            sum[0][m][0] = _mm256_add_epi32(sum[0][m][0], sum[c][m][0]);
            sum[0][m][1] = _mm256_add_epi32(sum[0][m][1], sum[c][m][1]);
        }
        store_i32x8(acc + (size_t)m * acc_stride, sum[0][m][0]);
        store_i32x8(acc + (size_t)m * acc_stride + 8, sum[0][m][1]);
    }
}

// FIRST rows, then SECOND more, of each panel.
template <int FIRST, int SECOND = 0>
__attribute__((always_inline)) inline void
gemm_panels(size_t kc, size_t panels, size_t panel_bytes, const void *const *rows,
            const void *first, int32_t *acc, size_t acc_stride) {
    MOE_REQUIRE(panels > 0);
    MOE_REQUIRE(panel_bytes >= MOE_CORRECTION_BYTES + moe_round_up(kc, MOE_KR) * MOE_NR);
    MOE_REQUIRE(FIRST + SECOND == 1 || acc_stride >= panels * MOE_NR);
    const uint8_t *panel = (const uint8_t *)first;
    for (size_t p = 0; p < panels; ++p, panel += panel_bytes, acc += MOE_NR) {
        // Multiples of the stride that are kept for all panels cost more than they spare: spills.
        __asm__("" : "+r"(acc_stride));
        gemm_tile<FIRST>(kc, rows, panel, acc, acc_stride);
        if constexpr (SECOND > 0) {
            gemm_tile<SECOND>(kc, rows + FIRST, panel, acc + FIRST * acc_stride, acc_stride);
        }
    }
}

} // namespace
