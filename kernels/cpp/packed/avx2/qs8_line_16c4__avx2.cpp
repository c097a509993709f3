// int8 product, one row x panels of 16 channels, k in fours. The processor's own prefetching does best:
// with instructions for it S2 took 122 us instead of 103 (AMD Zen 4, 1 thread).
#include "qs8_gemm_tile__avx2.h"

extern "C" void moe_qs8_line_16c4__avx2(size_t kc, size_t panels, const void *row,
                                        const void *panel, int32_t *acc) {
    line<0>(kc, panels, row, panel, acc);
}
