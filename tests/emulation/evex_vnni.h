// AVX-VNNI's products by AVX-512-VNNI's instructions of the same 256 bits, which differ in their encoding
// alone: with -include of this file the AVX-VNNI path's sources run on a CPU that has only the latter.
#pragma once

#include <immintrin.h>

#define _mm256_dpbusd_avx_epi32 _mm256_dpbusd_epi32
#define _mm256_dpwssd_avx_epi32 _mm256_dpwssd_epi32
