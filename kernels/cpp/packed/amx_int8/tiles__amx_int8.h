// The tile instructions, their numbers in the kernels, and what GCC has to be told about them.
//
// MOE_AMX_SHIM names a header with a C model of the intrinsics, for CPUs without tiles.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef MOE_AMX_SHIM
#include MOE_AMX_SHIM
#else
#include <immintrin.h>
#endif

// Contracts of microkernels; free in release builds, checked with -DMOE_CHECK_MICROKERNELS.
#ifdef MOE_CHECK_MICROKERNELS
#define MOE_REQUIRE(condition) ((condition) ? (void)0 : __builtin_trap())
#else
#define MOE_REQUIRE(condition) ((void)0)
#endif

// GCC 12 believes that ldtilecfg reads eight bytes and tileloadd none: it would move or drop stores in
// front of them.
#define MOE_STORES_ARE_READ() __asm__ volatile("" : : : "memory")

// Sixteen sums modulo 2^32, at any address of int32. As a vector, since clang 19 adds them one by one otherwise.
typedef uint32_t moe_sums __attribute__((vector_size(64), aligned(4), may_alias));

// All eight tiles; the intrinsics need literals.
#define MOE_ACC_00 0 // first rows x channels 0..15
#define MOE_ACC_01 1 // first rows x channels 16..31
#define MOE_ACC_10 2 // second rows, or odd blocks of k of the first
#define MOE_ACC_11 3
#define MOE_ROWS_0 4
#define MOE_ROWS_1 5
#define MOE_WEIGHTS_0 6
#define MOE_WEIGHTS_1 7
