// int8 product, five rows x panels of 16 channels, k in fours.
#include "qs8_gemm_tile__avx2.h"

extern "C" void moe_qs8_gemm_5x16c4__avx2(size_t kc, size_t panels, size_t panel_bytes,
                                          const void *const *rows, const void *panel, int32_t *acc,
                                          size_t acc_stride) {
    gemm_panels<5, kNextPanelBytes>(kc, panels, panel_bytes, rows, panel, acc, acc_stride);
}
