// fp32 product of router rows: up to twelve tokens x 16 experts over one block of d.
//
// The values and their order are those of ../avx2/f32_router_6x16__avx2.cpp, in vectors of twice the length:
// as fast where a core splits them (AMD Zen 4: 6.7 us both for 96 x 16 x 256), twice as fast by port counts
// where it has two 512-bit units. Twelve accumulators cover their latency of 4 cycles; a row's value is a
// broadcast inside of its FMA. Rows beyond mr compute the last one's values again and store nothing.
#include "rows__avx512_vnni.h"
#include "vectors__avx512_vnni.h"

namespace {

template <size_t ROWS>
__attribute__((always_inline)) inline void router_tile(size_t mr, size_t kc,
                                                       const float *const *rows,
                                                       const float *panel, int first, float *z,
                                                       size_t z_stride) {
    const float *x[ROWS];
    __m512 sum[ROWS];
#pragma GCC unroll 12
    for (size_t m = 0; m < ROWS; ++m) {
        x[m] = rows[m < mr ? m : mr - 1];
        sum[m] = _mm512_setzero_ps();
    }
    for (size_t k = 0; k < kc; ++k) {
        const __m512 r = _mm512_loadu_ps(panel + 16 * k);
#pragma GCC unroll 12
        for (size_t m = 0; m < ROWS; ++m) {
            sum[m] = _mm512_fmadd_ps(_mm512_set1_ps(x[m][k]), r, sum[m]);
        }
    }
#pragma GCC unroll 12
    for (size_t m = 0; m < ROWS; ++m) {
        if (m < mr) {
            float *out = z + m * z_stride;
            _mm512_storeu_ps(out, first ? sum[m] : _mm512_add_ps(_mm512_loadu_ps(out), sum[m]));
        }
    }
}

} // namespace

extern "C" void moe_f32_router_12x16__avx512_vnni(size_t mr, size_t kc, const float *const *rows,
                                                  const float *panel, int first, float *z,
                                                  size_t z_stride) {
    MOE_REQUIRE(mr >= 1 && mr <= 12);
    MOE_REQUIRE(kc > 0);
    MOE_REQUIRE(z_stride >= 16);
    if (mr <= 4) {
        router_tile<4>(mr, kc, rows, panel, first, z, z_stride);
    } else if (mr <= 8) {
        router_tile<8>(mr, kc, rows, panel, first, z, z_stride);
    } else {
        router_tile<12>(mr, kc, rows, panel, first, z, z_stride);
    }
}
