// int8 product, one row x panels of 32 channels: weights stream from memory once.
#include "qu8s8_gemm_tile__avx512_vnni.h"

extern "C" void moe_qu8s8_line_32c4__avx512_vnni(size_t kc, size_t panels, const void *row,
                                                 const void *first, int32_t *acc) {
    MOE_REQUIRE(panels > 0);
    const uint8_t *panel = (const uint8_t *)first;
    const size_t panel_bytes =
        MOE_VNNI_CORRECTION_BYTES + moe_vnni_round_up(kc, MOE_VNNI_KR) * MOE_VNNI_NR;
    for (size_t p = 0; p < panels; ++p, panel += panel_bytes, acc += MOE_VNNI_NR) {
        gemm_tile<1>(kc, &row, panel, acc, MOE_VNNI_NR);
    }
}
