// int32 products of the down matrix to fp32, a tile at a time.
#include <riscv_vector.h>

#include "rows__rvv.h"

extern "C" void moe_s32_f32_dequantize__rvv(size_t mr, size_t n, const int32_t *acc,
                                            size_t acc_stride, const float *scales,
                                            const float *h_scale, size_t offset,
                                            float *const *out) {
    for (size_t c = 0, vl; c < n; c += vl) {
        vl = __riscv_vsetvl_e32m4(n - c);
        const vfloat32m4_t channel = __riscv_vle32_v_f32m4(scales + offset + c, vl);
        for (size_t m = 0; m < mr; ++m) {
            const vint32m4_t product = __riscv_vle32_v_i32m4(acc + m * acc_stride + c, vl);
            const vfloat32m4_t factor = __riscv_vfmul_vf_f32m4(channel, h_scale[m], vl);
            const vfloat32m4_t v =
                __riscv_vfmul_vv_f32m4(__riscv_vfcvt_f_x_v_f32m4(product, vl), factor, vl);
            __riscv_vse32_v_f32m4(out[m] + offset + c, v, vl);
        }
    }
}
