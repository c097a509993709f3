// int8 product, four rows x panels of 16 channels, k in fours.
#include "qs8_gemm_tile__avx2.h"

extern "C" void moe_qs8_gemm_4x16c4__avx2(size_t kc, size_t panels, size_t panel_bytes,
                                          const void *const *rows, const void *panel, int32_t *acc,
                                          size_t acc_stride) {
    gemm_panels<4, kNextPanelBytes>(kc, panels, panel_bytes, rows, panel, acc, acc_stride);
}
