// Layout of activation rows and weight panels on the AVX2 path, and the signatures of its kernels.
//
// Row of one token, K values padded with zeros to K' = round_up(K, 32), |q| <= 127:
//   below  (1) int32             sum of |q| over the negative q
//   (28 bytes unused)
//   pairs  (K'/4, 2, 4) uint8    |q| of four consecutive k, then 255 where q < 0 and 0 elsewhere
// What the products make of them stands in qs8_gemm_tile__avx2.h.
//
// Panel of 16 channels, K padded with zero weights to K" = round_up(K, 4):
//   weights (K"/4, 16, 4) int8   four consecutive k of a channel in one 32-bit lane
#pragma once

#include "../microkernels.h"

#define MOE_NR 16
#define MOE_KR 4
#define MOE_ROW_STEP 32
#define MOE_ROW_HEAD_BYTES 32

#ifdef __cplusplus
extern "C" {
#endif

static inline size_t moe_round_up(size_t n, size_t step) { return (n + step - 1) / step * step; }

#define MOE_DECLARE_GEMM(mr)                                                                       \
    void moe_qs8_gemm_##mr##x16c4__avx2(size_t kc, size_t panels, size_t panel_bytes,              \
                                        const void *const *rows, const void *panel, int32_t *acc,  \
                                        size_t acc_stride);
MOE_DECLARE_GEMM(1)
MOE_DECLARE_GEMM(near_1)
MOE_DECLARE_GEMM(2)
MOE_DECLARE_GEMM(3)
MOE_DECLARE_GEMM(4)
MOE_DECLARE_GEMM(5)
#undef MOE_DECLARE_GEMM
void moe_qs8_pack_16c4__avx2(size_t k, const int8_t *const *channels, void *panel);
float moe_f32_absmax__avx2(size_t n, const float *v);
float moe_f32_qs8_quantize__avx2(size_t n, const float *v, float largest, void *row);
float moe_s32_swiglu_16__avx2(size_t panels, const int32_t *acc, const float *scales, float x_scale,
                              float *h);
void moe_s32_f32_dequantize__avx2(size_t mr, size_t n, const int32_t *acc, size_t acc_stride,
                                  const float *scales, const float *h_scale, size_t offset,
                                  float *const *out);
void moe_f32_combine__avx2(size_t n, const float *x, const float *const *parts, const float *gates,
                           size_t count, float *y);
void moe_f32_router_6x16__avx2(size_t mr, size_t kc, const float *const *rows, const float *panel,
                               int first, float *z, size_t z_stride);
void moe_f32_router_1x16__avx2(size_t mr, size_t kc, const float *const *rows, const float *panel,
                               int first, float *z, size_t z_stride);
float moe_f32_sum_squares__avx2(size_t n, const float *v);
int moe_f32_sigmoid_scores__avx2(size_t n, const float *z, const float *bias, float *affinity,
                                 float *score);
size_t moe_f32_find_above__avx2(size_t begin, size_t n, const float *score, float threshold);
void moe_f32_exp__avx2(size_t n, const float *v, float *out);

#ifdef __cplusplus
}
#endif
