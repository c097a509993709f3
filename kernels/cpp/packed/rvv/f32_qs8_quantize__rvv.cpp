// One activation row: its largest magnitude, and its values as int8.
//
// q = rint(v * (127 / largest)): vfcvt rounds half to even in the default mode, so q is that of the
// reference bit for bit. The clamp changes no finite value; it keeps |q| <= 127 after an overflow (a
// NaN becomes 127).
#include <riscv_vector.h>

#include "rows__rvv.h"

extern "C" float moe_f32_absmax__rvv(size_t n, const float *v) {
    const size_t all = __riscv_vsetvlmax_e32m4();
    vfloat32m4_t largest = __riscv_vfmv_v_f_f32m4(0.0f, all);
    for (size_t i = 0, vl; i < n; i += vl) {
        vl = __riscv_vsetvl_e32m4(n - i);
        const vfloat32m4_t values = __riscv_vle32_v_f32m4(v + i, vl);
        // Lanes behind the tail keep what they have.
        largest = __riscv_vfmax_vv_f32m4_tu(largest, largest, __riscv_vfabs_v_f32m4(values, vl), vl);
    }
    const vfloat32m1_t zero = __riscv_vfmv_s_f_f32m1(0.0f, 1);
    return __riscv_vfmv_f_s_f32m1_f32(__riscv_vfredmax_vs_f32m4_f32m1(largest, zero, all));
}

extern "C" float moe_f32_qs8_quantize__rvv(size_t n, const float *v, float largest, void *row) {
    const bool vanishes = largest < 0x1p-100f;
    const float factor = vanishes ? 0.0f : 127.0f / largest;
    int8_t *quantized = static_cast<int8_t *>(row);
    for (size_t i = 0, vl; i < n; i += vl) {
        vl = __riscv_vsetvl_e32m4(n - i);
        vfloat32m4_t scaled = __riscv_vfmul_vf_f32m4(__riscv_vle32_v_f32m4(v + i, vl), factor, vl);
        scaled = __riscv_vfmin_vf_f32m4(scaled, 127.0f, vl);
        scaled = __riscv_vfmax_vf_f32m4(scaled, -127.0f, vl);
        const vint32m4_t q = __riscv_vfcvt_x_f_v_i32m4(scaled, vl);
        const vint16m2_t half = __riscv_vncvt_x_x_w_i16m2(q, vl);
        __riscv_vse8_v_i8m1(quantized + i, __riscv_vncvt_x_x_w_i8m1(half, vl), vl);
    }
    for (size_t i = n; i < moe_rvv_row_bytes(n); ++i) {
        quantized[i] = 0;
    }
    return vanishes ? 0.0f : largest / 127.0f;
}
