// e^v of a group of vector registers, within MOE_EXP_MAX_ULP units in the last place.
//
// The arithmetic, its constants and its bound are those of ../avx2/exp__avx2.h, operation by
// operation, so that both give the same bits.
#pragma once

#include <riscv_vector.h>

#define MOE_EXP_MAX_ULP 1.01

static inline vfloat32m2_t exp_f32m2(vfloat32m2_t v, size_t vl) {
    // The clamp's order makes a NaN 88.722, as there.
    v = __riscv_vfmin_vf_f32m2(v, 88.722f, vl);
    v = __riscv_vfmax_vf_f32m2(v, -87.336f, vl);
    // Adding 1.5 * 2^23 rounds to an integer and leaves it in the low bits of the sum.
    const float shift = 0x1.8p+23f;
    vfloat32m2_t shifted = __riscv_vfmv_v_f_f32m2(shift, vl);
    shifted = __riscv_vfmacc_vf_f32m2(shifted, 0x1.715476p+0f, v, vl);
    const vfloat32m2_t n = __riscv_vfsub_vf_f32m2(shifted, shift, vl);
    vfloat32m2_t r = __riscv_vfnmsac_vf_f32m2(v, 0x1.62e400p-1f, n, vl);
    r = __riscv_vfnmsac_vf_f32m2(r, 0x1.7f7d1cp-20f, n, vl);
    vfloat32m2_t p = __riscv_vfmv_v_f_f32m2(0x1.6a23d0p-10f, vl);
    p = __riscv_vfmadd_vv_f32m2(p, r, __riscv_vfmv_v_f_f32m2(0x1.123a20p-7f, vl), vl);
    p = __riscv_vfmadd_vv_f32m2(p, r, __riscv_vfmv_v_f_f32m2(0x1.5558f2p-5f, vl), vl);
    p = __riscv_vfmadd_vv_f32m2(p, r, __riscv_vfmv_v_f_f32m2(0x1.555492p-3f, vl), vl);
    p = __riscv_vfmadd_vv_f32m2(p, r, __riscv_vfmv_v_f_f32m2(0x1.fffffcp-2f, vl), vl);
    p = __riscv_vfmadd_vv_f32m2(p, __riscv_vfmul_vv_f32m2(r, r, vl), r, vl);
    p = __riscv_vfadd_vf_f32m2(p, 1.0f, vl);
    const vint32m2_t exponent =
        __riscv_vsll_vx_i32m2(__riscv_vreinterpret_v_f32m2_i32m2(shifted), 23, vl);
    return __riscv_vreinterpret_v_i32m2_f32m2(
        __riscv_vadd_vv_i32m2(__riscv_vreinterpret_v_f32m2_i32m2(p), exponent, vl));
}
