// int8 product, MR rows x 32 channels, k in fours: the body shared by all tiles.
//
// Few rows have few accumulators, each a chain of vpdpbusd with a latency of 4 (Zen 4) or 5 (Ice
// Lake) cycles at one or two instructions a cycle; CHAINS independent sums over k keep at least
// eight in flight. They start at the panel's correction and at zero, and are added at the end.
//
// The processor's own prefetching does best: with instructions for it, 4 KB ahead, S2 took 109 us
// instead of 96 and S4 10.2 ms instead of 9.8 (AMD Zen 4, 1 thread).
#pragma once

#include "rows__avx512_vnni.h"
#include "vectors__avx512_vnni.h"

namespace {

template <int MR> constexpr int chains() { return MR >= 6 ? 1 : MR >= 3 ? 2 : 4; }

template <int MR>
__attribute__((always_inline)) inline void gemm_tile(size_t kc, const void *const *rows,
                                                     const void *panel, int32_t *acc,
                                                     size_t acc_stride) {
    static_assert(MR >= 1 && MR <= 8, "");
    constexpr int CHAINS = chains<MR>();
    MOE_REQUIRE(kc > 0);
    MOE_REQUIRE((uintptr_t)panel % 64 == 0);
    const int8_t *w = (const int8_t *)panel + MOE_VNNI_CORRECTION_BYTES;
    const uint8_t *x[MR];
    __m512i sum[CHAINS][MR][2];
#pragma GCC unroll 8
    for (int m = 0; m < MR; ++m) {
        x[m] = (const uint8_t *)rows[m];
        sum[0][m][0] = _mm512_load_si512(panel);
        sum[0][m][1] = _mm512_load_si512((const int8_t *)panel + 64);
#pragma GCC unroll 4
        for (int c = 1; c < CHAINS; ++c) {
            sum[c][m][0] = sum[c][m][1] = _mm512_setzero_si512();
        }
    }
    const size_t steps = moe_vnni_round_up(kc, MOE_VNNI_KR) / MOE_VNNI_KR;
    size_t step = 0;
    for (; step + CHAINS <= steps; step += CHAINS) {
#pragma GCC unroll 4
        for (int c = 0; c < CHAINS; ++c, w += 128) {
            __m512i w0 = _mm512_load_si512(w);
            __m512i w1 = _mm512_load_si512(w + 64);
            if (MR == 2 || MR == 3) {
                // Else the compiler reads them again for every row, and loads bind: in L1 167 and 171
                // MAC/ns instead of 205 and 235 (AMD Zen 4).
                __asm__("" : "+v"(w0), "+v"(w1));
            }
#pragma GCC unroll 8
            for (int m = 0; m < MR; ++m) {
                const __m512i u = broadcast_u8x4(x[m] + MOE_VNNI_KR * (step + c));
                sum[c][m][0] = _mm512_dpbusd_epi32(sum[c][m][0], u, w0);
                sum[c][m][1] = _mm512_dpbusd_epi32(sum[c][m][1], u, w1);
            }
        }
    }
    for (; step < steps; ++step, w += 128) {
        const __m512i w0 = _mm512_load_si512(w);
        const __m512i w1 = _mm512_load_si512(w + 64);
#pragma GCC unroll 8
        for (int m = 0; m < MR; ++m) {
            const __m512i u = broadcast_u8x4(x[m] + MOE_VNNI_KR * step);
            sum[0][m][0] = _mm512_dpbusd_epi32(sum[0][m][0], u, w0);
            sum[0][m][1] = _mm512_dpbusd_epi32(sum[0][m][1], u, w1);
        }
    }
#pragma GCC unroll 8
    for (int m = 0; m < MR; ++m) {
#pragma GCC unroll 4
        for (int c = 1; c < CHAINS; ++c) {
            sum[0][m][0] = _mm512_add_epi32(sum[0][m][0], sum[c][m][0]);
            sum[0][m][1] = _mm512_add_epi32(sum[0][m][1], sum[c][m][1]);
        }
        _mm512_storeu_si512(acc + (size_t)m * acc_stride, sum[0][m][0]);
        _mm512_storeu_si512(acc + (size_t)m * acc_stride + 16, sum[0][m][1]);
    }
}

template <int MR>
__attribute__((always_inline)) inline void
gemm_panels(size_t kc, size_t panels, size_t panel_bytes, const void *const *rows,
            const void *first, int32_t *acc, size_t acc_stride) {
    MOE_REQUIRE(panels > 0);
    MOE_REQUIRE(panel_bytes >= MOE_VNNI_CORRECTION_BYTES +
                                   moe_vnni_round_up(kc, MOE_VNNI_KR) * MOE_VNNI_NR);
    MOE_REQUIRE(MR == 1 || acc_stride >= panels * MOE_VNNI_NR);
    const uint8_t *panel = (const uint8_t *)first;
    for (size_t p = 0; p < panels; ++p, panel += panel_bytes, acc += MOE_VNNI_NR) {
        // Multiples of the stride that are kept for all panels cost more than they spare: spills.
        __asm__("" : "+r"(acc_stride));
        gemm_tile<MR>(kc, rows, panel, acc, acc_stride);
    }
}

} // namespace
