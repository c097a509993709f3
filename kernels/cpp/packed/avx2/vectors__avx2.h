// Shorthands shared by the AVX2 microkernels.
#pragma once

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

// Ends a step for the compiler: the value stays in its register and the additions before this point
// are not reordered with those after it. Without it GCC 12 reassociates the sums of an unrolled
// loop, runs out of registers and spills (measured: 45 instead of 70 GMAC/s for one row).
#define MOE_PIN(v) __asm__("" : "+x"(v))

// Contracts of microkernels; free in release builds, checked with -DMOE_CHECK_MICROKERNELS.
#ifdef MOE_CHECK_MICROKERNELS
#define MOE_REQUIRE(condition) ((condition) ? (void)0 : __builtin_trap())
#else
#define MOE_REQUIRE(condition) ((void)0)
#endif

static inline __m256i load_i8x32(const void *p) {
    return _mm256_loadu_si256((const __m256i *)p);
}

static inline void store_i32x8(int32_t *p, __m256i v) { _mm256_storeu_si256((__m256i *)p, v); }

// Four consecutive bytes in every 32-bit lane.
static inline __m256i broadcast_i8x4(const void *p) {
    int32_t four;
    __builtin_memcpy(&four, p, sizeof four);
    return _mm256_set1_epi32(four);
}

// Lanes 0..count-1 of a mask, 0 <= count <= 8.
static inline __m256i first_lanes(size_t count) {
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int32_t)count), lane);
}

// Up to eight floats, zeros behind the end.
static inline __m256 load_f32(const float *p, size_t left) {
    return left >= 8 ? _mm256_loadu_ps(p) : _mm256_maskload_ps(p, first_lanes(left));
}

static inline void store_f32(float *p, size_t left, __m256 v) {
    if (left >= 8) {
        _mm256_storeu_ps(p, v);
    } else {
        _mm256_maskstore_ps(p, first_lanes(left), v);
    }
}

static inline __m256 abs_f32(__m256 v) {
    return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), v);
}

static inline float max_of_f32x8(__m256 v) {
    __m128 m = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    m = _mm_max_ps(m, _mm_movehl_ps(m, m));
    m = _mm_max_ss(m, _mm_shuffle_ps(m, m, 1));
    return _mm_cvtss_f32(m);
}

static inline float sum_of_f32x8(__m256 v) {
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    s = _mm_add_ss(s, _mm_shuffle_ps(s, s, 1));
    return _mm_cvtss_f32(s);
}
