// h = SiLU(g) * u from the accumulators of dual panels (8 gate channels, then 8 of up).
#include <riscv_vector.h>

#include "exp__rvv.h"
#include "rows__rvv.h"

namespace {

// f32(acc) * (x_scale * scale)
inline vfloat32m2_t value(const int32_t *acc, const float *scales, float x_scale, size_t vl) {
    const vfloat32m2_t scale =
        __riscv_vfmul_vf_f32m2(__riscv_vle32_v_f32m2(scales, vl), x_scale, vl);
    const vint32m2_t product = __riscv_vle32_v_i32m2(acc, vl);
    return __riscv_vfmul_vv_f32m2(__riscv_vfcvt_f_x_v_f32m2(product, vl), scale, vl);
}

} // namespace

extern "C" float moe_s32_swiglu_16__rvv(size_t panels, const int32_t *acc, const float *scales,
                                        float x_scale, float *h) {
    constexpr size_t half = MOE_RVV_NR / 2; // two registers of 128 bits hold it
    vfloat32m1_t largest = __riscv_vfmv_s_f_f32m1(0.0f, 1);
    const size_t vl = __riscv_vsetvl_e32m2(half);
    for (size_t p = 0; p < panels; ++p, acc += MOE_RVV_NR, scales += MOE_RVV_NR, h += half) {
        const vfloat32m2_t g = value(acc, scales, x_scale, vl);
        const vfloat32m2_t u = value(acc + half, scales + half, x_scale, vl);
        const vfloat32m2_t e = exp_f32m2(__riscv_vfneg_v_f32m2(g, vl), vl);
        const vfloat32m2_t silu = __riscv_vfdiv_vv_f32m2(g, __riscv_vfadd_vf_f32m2(e, 1.0f, vl), vl);
        const vfloat32m2_t v = __riscv_vfmul_vv_f32m2(silu, u, vl);
        __riscv_vse32_v_f32m2(h, v, vl);
        largest = __riscv_vfredmax_vs_f32m2_f32m1(__riscv_vfabs_v_f32m2(v, vl), largest, vl);
    }
    return __riscv_vfmv_f_s_f32m1_f32(largest);
}
