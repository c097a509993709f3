// fp32 product of router rows: up to eight tokens x 16 experts over one block of d.
//
// Panel block: (kc, 16) f32, the 16 experts' weights of one d together. A row's sum runs over the d
// of the block in order and is then added to z.
#include <riscv_vector.h>

#include "rows__rvv.h"

namespace {

#define EACH_ROW(what) what(0) what(1) what(2) what(3) what(4) what(5) what(6) what(7)
#define ROW(m) const float *x##m = rows[m < MR ? m : 0];
#define ZERO(m) vfloat32m2_t acc##m = __riscv_vfmv_v_f_f32m2(0.0f, vl);
#define STEP(m)                                                                                    \
    if (m < MR) {                                                                                  \
        acc##m = __riscv_vfmacc_vf_f32m2(acc##m, x##m[k], weights, vl);                            \
    }
#define STORE(m)                                                                                   \
    if (m < MR) {                                                                                  \
        float *out = z + m * z_stride + c;                                                         \
        if (!first) {                                                                              \
            acc##m = __riscv_vfadd_vv_f32m2(__riscv_vle32_v_f32m2(out, vl), acc##m, vl);           \
        }                                                                                          \
        __riscv_vse32_v_f32m2(out, acc##m, vl);                                                    \
    }

template <size_t MR>
inline __attribute__((always_inline)) void dots(size_t kc, const float *const *rows,
                                                const float *panel, int first, float *z,
                                                size_t z_stride) {
    EACH_ROW(ROW)
    for (size_t c = 0, vl; c < MOE_RVV_NR; c += vl) {
        vl = __riscv_vsetvl_e32m2(MOE_RVV_NR - c);
        const float *r = panel + c;
        EACH_ROW(ZERO)
#pragma GCC unroll 4
        for (size_t k = 0; k < kc; ++k, r += MOE_RVV_NR) {
            const vfloat32m2_t weights = __riscv_vle32_v_f32m2(r, vl);
            EACH_ROW(STEP)
        }
        EACH_ROW(STORE)
    }
}

} // namespace

extern "C" void moe_f32_router_8x16__rvv(size_t mr, size_t kc, const float *const *rows,
                                         const float *panel, int first, float *z,
                                         size_t z_stride) {
    switch (mr) {
    case 1:
        return dots<1>(kc, rows, panel, first, z, z_stride);
    case 2:
        return dots<2>(kc, rows, panel, first, z, z_stride);
    case 3:
        return dots<3>(kc, rows, panel, first, z, z_stride);
    case 4:
        return dots<4>(kc, rows, panel, first, z, z_stride);
    case 5:
        return dots<5>(kc, rows, panel, first, z, z_stride);
    case 6:
        return dots<6>(kc, rows, panel, first, z, z_stride);
    case 7:
        return dots<7>(kc, rows, panel, first, z, z_stride);
    default:
        return dots<8>(kc, rows, panel, first, z, z_stride);
    }
}
