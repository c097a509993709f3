// int8 product, one row x 16 channels, k in fours: weights stream from memory once. The processor's
// own prefetching does best: with instructions for it S2 took 122 us instead of 103 (AMD Zen 4, 1
// thread).
#include "qs8_gemm_tile__avx2.h"

extern "C" void moe_qs8_gemm_1x16c4__avx2(size_t kc, const void *const *rows, const void *panel,
                                          int32_t *acc, size_t acc_stride) {
    gemm_tile<1, 0>(kc, rows, panel, acc, acc_stride);
}
