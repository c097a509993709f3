// int8 product, one row x panels of 16 channels, k in fours, of weights that L2 holds: it answers
// soon enough for instructions that prefetch, and S1 takes 7.0 us instead of 7.5 (AMD Zen 4, 1
// thread).
#include "qs8_gemm_tile__avx2.h"

extern "C" void moe_qs8_gemm_near_1x16c4__avx2(size_t kc, size_t panels, size_t panel_bytes,
                                               const void *const *rows, const void *panel,
                                               int32_t *acc, size_t acc_stride) {
    gemm_panels<1, 1024>(kc, panels, panel_bytes, rows, panel, acc, acc_stride);
}
