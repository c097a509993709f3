// int8 weights times int16 activations, 1 to 4 rows x 16 channels, each channel along k.
//
// Two channels at a time: eight sums stay in registers, and a value that was loaded serves twice or
// four times. k is the inner loop, which every compiler turns into multiply-adds of pairs where the
// machine has them.
#include "rows__portable.h"

namespace {

constexpr size_t kChannels = 2; // that share a load of the rows

template <size_t MR>
inline void gemm(size_t kc, const void *const *rows, const void *panel, int32_t *acc,
                 size_t acc_stride) {
    const int8_t *weights = static_cast<const int8_t *>(panel);
    const int16_t *x[MR];
    for (size_t m = 0; m < MR; ++m) {
        x[m] = static_cast<const int16_t *>(rows[m]);
    }
    for (size_t c = 0; c < MOE_PORTABLE_NR; c += kChannels) {
        const int8_t *w0 = weights + c * kc;
        const int8_t *w1 = w0 + kc;
        int32_t sum0[MR] = {}, sum1[MR] = {};
        for (size_t k = 0; k < kc; ++k) {
            const int16_t v0 = w0[k], v1 = w1[k];
            for (size_t m = 0; m < MR; ++m) {
                sum0[m] += v0 * x[m][k];
                sum1[m] += v1 * x[m][k];
            }
        }
        for (size_t m = 0; m < MR; ++m) {
            acc[m * acc_stride + c] = sum0[m];
            acc[m * acc_stride + c + 1] = sum1[m];
        }
    }
}

} // namespace

extern "C" void moe_qs16_gemm_1x16__portable(size_t kc, const void *const *rows,
                                             const void *panel, int32_t *acc, size_t acc_stride) {
    gemm<1>(kc, rows, panel, acc, acc_stride);
}

extern "C" void moe_qs16_gemm_2x16__portable(size_t kc, const void *const *rows,
                                             const void *panel, int32_t *acc, size_t acc_stride) {
    gemm<2>(kc, rows, panel, acc, acc_stride);
}

extern "C" void moe_qs16_gemm_3x16__portable(size_t kc, const void *const *rows,
                                             const void *panel, int32_t *acc, size_t acc_stride) {
    gemm<3>(kc, rows, panel, acc, acc_stride);
}

extern "C" void moe_qs16_gemm_4x16__portable(size_t kc, const void *const *rows,
                                             const void *panel, int32_t *acc, size_t acc_stride) {
    gemm<4>(kc, rows, panel, acc, acc_stride);
}
