// Layout of activation rows and weight panels on the AVX-512-VNNI path, and its kernels' signatures.
//
// vpdpbusd multiplies unsigned by signed bytes and adds four products to an int32 lane without
// saturating in between. Activations are the unsigned side:
//
// Row of one token, K values padded to K' = round_up(K, 64):
//   u  (K') uint8   q + 128 with |q| <= 127; 128 where padded
//
// Panel of 32 channels, K padded with zero weights to K" = round_up(K, 4):
//   correction (32) int32          -128 * sum over k of w[c, k], undoes the offset of u
//   weights    (K"/4, 32, 4) int8  four consecutive k of a channel in one 32-bit lane
//
// sum(u w) + correction = sum(q w): exact for every int8 weight, since int32 sums wrap modulo 2^32
// on the way and the result fits for k <= 132104 (127 * 128 * k < 2^31).
#pragma once

#include "../microkernels.h"

#define MOE_VNNI_NR 32
#define MOE_VNNI_KR 4
#define MOE_VNNI_ROW_STEP 64
#define MOE_VNNI_CORRECTION_BYTES 128

#ifdef __cplusplus
extern "C" {
#endif

static inline size_t moe_vnni_round_up(size_t n, size_t step) { return (n + step - 1) / step * step; }

#define MOE_DECLARE_GEMM(mr)                                                                       \
    void moe_qu8s8_gemm_##mr##x32c4__avx512_vnni(size_t kc, size_t panels, size_t panel_bytes,     \
                                                 const void *const *rows, const void *panel,       \
                                                 int32_t *acc, size_t acc_stride);
MOE_DECLARE_GEMM(1)
MOE_DECLARE_GEMM(2)
MOE_DECLARE_GEMM(3)
MOE_DECLARE_GEMM(4)
MOE_DECLARE_GEMM(5)
MOE_DECLARE_GEMM(6)
MOE_DECLARE_GEMM(7)
MOE_DECLARE_GEMM(8)
#undef MOE_DECLARE_GEMM
void moe_qs8_pack_32c4__avx512_vnni(size_t k, const int8_t *const *channels, void *panel);
float moe_f32_absmax__avx512_vnni(size_t n, const float *v);
float moe_f32_qu8_quantize__avx512_vnni(size_t n, const float *v, float largest, void *row);
float moe_s32_swiglu_32__avx512_vnni(size_t panels, const int32_t *acc, const float *scales,
                                     float x_scale, float *h);
void moe_s32_f32_dequantize__avx512_vnni(size_t mr, size_t n, const int32_t *acc,
                                         size_t acc_stride, const float *scales,
                                         const float *h_scale, size_t offset, float *const *out);
void moe_f32_combine__avx512_vnni(size_t n, const float *x, const float *const *parts,
                                  const float *gates, size_t count, float *y);
void moe_f32_router_12x16__avx512_vnni(size_t mr, size_t kc, const float *const *rows,
                                       const float *panel, int first, float *z, size_t z_stride);
void moe_f32_exp__avx512_vnni(size_t n, const float *v, float *out);

#ifdef __cplusplus
}
#endif
