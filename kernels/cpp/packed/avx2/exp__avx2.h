// e^v of eight floats, within MOE_EXP_MAX_ULP units in the last place of the exact value.
//
// v = n ln 2 + r with |r| <= ln 2 / 2, e^v = 2^n (1 + r + r^2 p(r)). p is a minimax polynomial of
// degree 4 for the relative error of e^r (3.1e-9), found with the Remez exchange; ln 2 is split
// (Cody and Waite, Software Manual for the Elementary Functions, 1980) so that n * kLn2High is
// exact. Arguments are clamped to [-87.336, 88.722]: results stay normal numbers, e^-1000 gives
// 1.2e-38 and e^1000 gives 3.4e38 (just below the largest float). NaN gives e^88.722.
#pragma once

#include <immintrin.h>

// The worst of all floats between the clamps is 1.0086 (at -0x1.b610fp+4); a test watches a sample.
#define MOE_EXP_MAX_ULP 1.01

#define MOE_EACH _Pragma("GCC unroll 8") for (int i = 0; i < N; ++i)

// N vectors side by side: each step waits for the one before it, and the scheduler holds too few
// instructions to reach the next iteration meanwhile. 128 values of SiLU took 262 cycles one by
// one, 222 by four (AMD Zen 4).
template <int N> static inline __attribute__((always_inline)) void exp_f32x8(__m256 (&v)[N]) {
    const __m256 log2e = _mm256_set1_ps(0x1.715476p+0f);
    const __m256 ln2_high = _mm256_set1_ps(0x1.62e400p-1f); // 15 significant bits
    const __m256 ln2_low = _mm256_set1_ps(0x1.7f7d1cp-20f);
    // Adding 1.5 * 2^23 rounds to an integer and leaves it in the low bits of the sum.
    const __m256 shift = _mm256_set1_ps(0x1.8p+23f);
    __m256 shifted[N], n[N], p[N];
    MOE_EACH v[i] = _mm256_min_ps(v[i], _mm256_set1_ps(88.722f));
    MOE_EACH v[i] = _mm256_max_ps(v[i], _mm256_set1_ps(-87.336f));
    MOE_EACH shifted[i] = _mm256_fmadd_ps(v[i], log2e, shift);
    MOE_EACH n[i] = _mm256_sub_ps(shifted[i], shift);
    MOE_EACH v[i] = _mm256_fnmadd_ps(n[i], ln2_high, v[i]);
    MOE_EACH v[i] = _mm256_fnmadd_ps(n[i], ln2_low, v[i]);
    const __m256 p4 = _mm256_set1_ps(0x1.6a23d0p-10f);
    MOE_EACH p[i] = _mm256_fmadd_ps(p4, v[i], _mm256_set1_ps(0x1.123a20p-7f));
    MOE_EACH p[i] = _mm256_fmadd_ps(p[i], v[i], _mm256_set1_ps(0x1.5558f2p-5f));
    MOE_EACH p[i] = _mm256_fmadd_ps(p[i], v[i], _mm256_set1_ps(0x1.555492p-3f));
    MOE_EACH p[i] = _mm256_fmadd_ps(p[i], v[i], _mm256_set1_ps(0x1.fffffcp-2f));
    MOE_EACH p[i] = _mm256_fmadd_ps(_mm256_mul_ps(v[i], v[i]), p[i], v[i]);
    MOE_EACH p[i] = _mm256_add_ps(p[i], _mm256_set1_ps(1.0f));
    // Times 2^n by addition to the exponent field. n = 128 only occurs with a mantissa below 1, so
    // that the field stays below 255; n = -126 only with one above 1, so that it stays above 0.
    MOE_EACH {
        const __m256i exponent = _mm256_slli_epi32(_mm256_castps_si256(shifted[i]), 23);
        v[i] = _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(p[i]), exponent));
    }
}
#undef MOE_EACH

static inline __m256 exp_f32x8(__m256 v) {
    __m256 one[1] = {v};
    exp_f32x8(one);
    return one[0];
}
