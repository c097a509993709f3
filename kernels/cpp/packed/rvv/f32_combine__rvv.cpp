// y = x + sum of gates[i] * parts[i], multiply then add, in the order given.
#include <riscv_vector.h>

#include "rows__rvv.h"

extern "C" void moe_f32_combine__rvv(size_t n, const float *x, const float *const *parts,
                                     const float *gates, size_t count, float *y) {
    for (size_t i = 0, vl; i < n; i += vl) {
        vl = __riscv_vsetvl_e32m4(n - i);
        vfloat32m4_t sum = x == NULL ? __riscv_vfmv_v_f_f32m4(0.0f, vl)
                                     : __riscv_vle32_v_f32m4(x + i, vl);
        for (size_t p = 0; p < count; ++p) {
            const vfloat32m4_t part = __riscv_vle32_v_f32m4(parts[p] + i, vl);
            sum = __riscv_vfadd_vv_f32m4(sum, __riscv_vfmul_vf_f32m4(part, gates[p], vl), vl);
        }
        __riscv_vse32_v_f32m4(y + i, sum, vl);
    }
}
