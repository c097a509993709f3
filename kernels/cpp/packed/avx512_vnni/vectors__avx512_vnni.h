// Shorthands shared by the AVX-512-VNNI microkernels.
#pragma once

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

// Contracts of microkernels; free in release builds, checked with -DMOE_CHECK_MICROKERNELS.
#ifdef MOE_CHECK_MICROKERNELS
#define MOE_REQUIRE(condition) ((condition) ? (void)0 : __builtin_trap())
#else
#define MOE_REQUIRE(condition) ((void)0)
#endif

// Four consecutive bytes in every 32-bit lane.
static inline __m512i broadcast_u8x4(const void *p) {
    int32_t four;
    __builtin_memcpy(&four, p, sizeof four);
    return _mm512_set1_epi32(four);
}

// Lanes 0..left-1, all sixteen when there are more.
static inline __mmask16 first_lanes(size_t left) {
    return left >= 16 ? (__mmask16)0xffff : (__mmask16)((1u << left) - 1);
}

// Up to sixteen floats, zeros behind the end.
static inline __m512 load_f32(const float *p, size_t left) {
    return _mm512_maskz_loadu_ps(first_lanes(left), p);
}

static inline void store_f32(float *p, size_t left, __m512 v) {
    _mm512_mask_storeu_ps(p, first_lanes(left), v);
}
