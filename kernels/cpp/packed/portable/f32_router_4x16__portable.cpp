// fp32 product of router rows: up to four tokens x 16 experts, each sum along d in order.
//
// Panel block: (kc, 16) f32, the 16 experts' weights of one d together, so that the lanes of a
// vector are experts and a sum keeps the reference's order.
#include "rows__portable.h"

namespace {

template <size_t MR>
inline void dots(size_t kc, const float *const *rows, const float *panel, int first, float *z,
                 size_t z_stride) {
    float sum[MR][MOE_PORTABLE_NR] = {};
    if (!first) {
        for (size_t m = 0; m < MR; ++m) {
            for (size_t c = 0; c < MOE_PORTABLE_NR; ++c) {
                sum[m][c] = z[m * z_stride + c];
            }
        }
    }
    for (size_t k = 0; k < kc; ++k) {
        for (size_t m = 0; m < MR; ++m) {
            const float value = rows[m][k];
            for (size_t c = 0; c < MOE_PORTABLE_NR; ++c) {
                sum[m][c] += panel[k * MOE_PORTABLE_NR + c] * value;
            }
        }
    }
    for (size_t m = 0; m < MR; ++m) {
        for (size_t c = 0; c < MOE_PORTABLE_NR; ++c) {
            z[m * z_stride + c] = sum[m][c];
        }
    }
}

} // namespace

extern "C" void moe_f32_router_4x16__portable(size_t mr, size_t kc, const float *const *rows,
                                              const float *panel, int first, float *z,
                                              size_t z_stride) {
    switch (mr) {
    case 1:
        return dots<1>(kc, rows, panel, first, z, z_stride);
    case 2:
        return dots<2>(kc, rows, panel, first, z, z_stride);
    case 3:
        return dots<3>(kc, rows, panel, first, z, z_stride);
    default:
        return dots<4>(kc, rows, panel, first, z, z_stride);
    }
}
