// The vector exponential by itself, for the tests of its bound.
#include "exp__rvv.h"
#include "rows__rvv.h"

extern "C" void moe_f32_exp__rvv(size_t n, const float *v, float *out) {
    for (size_t i = 0, vl; i < n; i += vl) {
        vl = __riscv_vsetvl_e32m2(n - i);
        __riscv_vse32_v_f32m2(out + i, exp_f32m2(__riscv_vle32_v_f32m2(v + i, vl), vl), vl);
    }
}
