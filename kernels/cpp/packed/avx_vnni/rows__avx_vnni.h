// Layout of activation rows on the AVX-VNNI path, and the signatures of its own kernels.
//
// vpdpbusd multiplies unsigned by signed bytes and adds four products to an int32 lane without
// saturating in between. Activations are the unsigned side:
//
// Row of one token, K values padded to K' = round_up(K, 32):
//   u  (K') uint8   q + 128 with |q| <= 127; 128 where padded
//
// Panel of 16 channels: that of ../avx2/rows__avx2.h behind
//   correction (16) int32   -128 * sum over k of w[c, k]
// sum(u w) + correction = sum(q w): exact for every int8 weight, since int32 sums wrap modulo 2^32 on
// the way and the result fits for k <= 132104 (127 * 128 * k < 2^31).
#pragma once

#include "../avx2/rows__avx2.h"

#define MOE_CORRECTION_BYTES 64

#ifdef __cplusplus
extern "C" {
#endif

#define MOE_DECLARE_GEMM(mr)                                                                       \
    void moe_qu8s8_gemm_##mr##x16c4__avx_vnni(size_t kc, size_t panels, size_t panel_bytes,        \
                                              const void *const *rows, const void *panel,          \
                                              int32_t *acc, size_t acc_stride);
MOE_DECLARE_GEMM(1)
MOE_DECLARE_GEMM(2)
MOE_DECLARE_GEMM(3)
MOE_DECLARE_GEMM(4)
MOE_DECLARE_GEMM(5)
MOE_DECLARE_GEMM(6)
#undef MOE_DECLARE_GEMM
void moe_qs8_pack_16c4__avx_vnni(size_t k, const int8_t *const *channels, void *panel);
float moe_f32_qu8_quantize__avx_vnni(size_t n, const float *v, float largest, void *row);

#ifdef __cplusplus
}
#endif
