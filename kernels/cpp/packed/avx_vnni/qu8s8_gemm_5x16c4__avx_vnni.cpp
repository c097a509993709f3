// int8 product, 5 rows; see qu8s8_gemm_tile__avx_vnni.h.
#include "qu8s8_gemm_tile__avx_vnni.h"

extern "C" void moe_qu8s8_gemm_5x16c4__avx_vnni(size_t kc, size_t panels, size_t panel_bytes,
                                               const void *const *rows, const void *panel,
                                               int32_t *acc, size_t acc_stride) {
    gemm_panels<3, 2>(kc, panels, panel_bytes, rows, panel, acc, acc_stride);
}
