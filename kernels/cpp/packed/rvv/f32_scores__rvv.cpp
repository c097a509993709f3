// What the choice of experts needs of a row of scores.
#include <riscv_vector.h>

#include "exp__rvv.h"
#include "rows__rvv.h"

// Relative error below (n / 32 + 256) * 2^-24: lanes of at least 32 sums, then these in any order.
// The error bound of the router (route.cpp) forgives 2^-10.
extern "C" float moe_f32_sum_squares__rvv(size_t n, const float *v) {
    const size_t all = __riscv_vsetvlmax_e32m8();
    vfloat32m8_t sum = __riscv_vfmv_v_f_f32m8(0.0f, all);
    for (size_t i = 0, vl; i < n; i += vl) {
        vl = __riscv_vsetvl_e32m8(n - i);
        const vfloat32m8_t values = __riscv_vle32_v_f32m8(v + i, vl);
        sum = __riscv_vfmacc_vv_f32m8_tu(sum, values, values, vl);
    }
    const vfloat32m1_t zero = __riscv_vfmv_s_f_f32m1(0.0f, 1);
    return __riscv_vfmv_f_s_f32m1_f32(__riscv_vfredusum_vs_f32m8_f32m1(sum, zero, all));
}

// affinity = 1 / (1 + e^-z) is within 4 * 2^-24 of the exact sigmoid, as on the AVX2 path.
extern "C" int moe_f32_sigmoid_scores__rvv(size_t n, const float *z, const float *bias,
                                           float *affinity, float *score) {
    size_t finite = 0;
    for (size_t i = 0, vl; i < n; i += vl) {
        vl = __riscv_vsetvl_e32m2(n - i);
        const vfloat32m2_t v = __riscv_vle32_v_f32m2(z + i, vl);
        const vbool16_t within =
            __riscv_vmfle_vf_f32m2_b16(__riscv_vfabs_v_f32m2(v, vl), 0x1.fffffep+127f, vl);
        finite += __riscv_vcpop_m_b16(within, vl);
        const vfloat32m2_t e = exp_f32m2(__riscv_vfneg_v_f32m2(v, vl), vl);
        const vfloat32m2_t a =
            __riscv_vfrdiv_vf_f32m2(__riscv_vfadd_vf_f32m2(e, 1.0f, vl), 1.0f, vl);
        __riscv_vse32_v_f32m2(affinity + i, a, vl);
        const vfloat32m2_t b = __riscv_vle32_v_f32m2(bias + i, vl);
        __riscv_vse32_v_f32m2(score + i, __riscv_vfadd_vv_f32m2(a, b, vl), vl);
    }
    return finite == n ? 1 : 0;
}

extern "C" size_t moe_f32_find_above__rvv(size_t begin, size_t n, const float *score,
                                          float threshold) {
    for (size_t i = begin, vl; i < n; i += vl) {
        vl = __riscv_vsetvl_e32m4(n - i);
        const vfloat32m4_t v = __riscv_vle32_v_f32m4(score + i, vl);
        const long at = __riscv_vfirst_m_b8(__riscv_vmfgt_vf_f32m4_b8(v, threshold, vl), vl);
        if (at >= 0) {
            return i + static_cast<size_t>(at);
        }
    }
    return n;
}
