// int8 product, one row x panels of 16 channels, k in fours, of weights that L2 holds: it answers soon
// enough for instructions that prefetch, and S1 takes 7.0 us instead of 7.5 (AMD Zen 4, 1 thread).
#include "qs8_gemm_tile__avx2.h"

extern "C" void moe_qs8_line_near_16c4__avx2(size_t kc, size_t panels, const void *row,
                                             const void *panel, int32_t *acc) {
    line<1024>(kc, panels, row, panel, acc);
}
