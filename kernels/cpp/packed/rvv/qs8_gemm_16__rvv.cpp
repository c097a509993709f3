// int8 product, 1 to 8 rows x 16 channels: the 16 weights of one k are loaded and sign-extended
// once, and every row multiplies them by its own value into int32 accumulators (vwmacc.vx).
//
// Eight accumulators of LMUL 2, the weights and what is loaded ahead fit the 32 registers. A product
// of int16 is at most 127 * 128 in size, and int32 holds K <= 132104 of them.
#include <riscv_vector.h>

#include "rows__rvv.h"

namespace {

// The tuple types of a row count: sizeless vectors cannot be elements of an array.
#define EACH_ROW(what) what(0) what(1) what(2) what(3) what(4) what(5) what(6) what(7)
#define ROW(m) const int8_t *x##m = static_cast<const int8_t *>(rows[m < MR ? m : 0]);
#define ZERO(m) vint32m2_t acc##m = __riscv_vmv_v_x_i32m2(0, vl);
#define STEP(m)                                                                                    \
    if (m < MR) {                                                                                  \
        acc##m = __riscv_vwmacc_vx_i32m2(acc##m, x##m[k], weights, vl);                            \
    }
#define STORE(m)                                                                                   \
    if (m < MR) {                                                                                  \
        __riscv_vse32_v_i32m2(acc + m * acc_stride + c, acc##m, vl);                               \
    }

template <size_t MR>
inline __attribute__((always_inline)) void gemm(size_t kc, const void *const *rows,
                                                const void *panel, int32_t *acc,
                                                size_t acc_stride) {
    EACH_ROW(ROW)
    for (size_t c = 0, vl; c < MOE_RVV_NR; c += vl) {
        vl = __riscv_vsetvl_e16m1(MOE_RVV_NR - c);
        const int8_t *w = static_cast<const int8_t *>(panel) + c;
        EACH_ROW(ZERO)
#pragma GCC unroll 8
        for (size_t k = 0; k < kc; ++k, w += MOE_RVV_NR) {
            const vint16m1_t weights =
                __riscv_vsext_vf2_i16m1(__riscv_vle8_v_i8mf2(w, vl), vl);
            EACH_ROW(STEP)
        }
        EACH_ROW(STORE)
    }
}

} // namespace

#define GEMM(m)                                                                                    \
    extern "C" MOE_RVV_GEMM(m) { gemm<m>(kc, rows, panel, acc, acc_stride); }
GEMM(1)
GEMM(2)
GEMM(3)
GEMM(4)
GEMM(5)
GEMM(6)
GEMM(7)
GEMM(8)
