// Layout of activation rows and weight panels on the portable path, and the signatures of its
// kernels.
//
// Row of one token: K int16. A compiler's multiply-add of int16 pairs serves the products (SSE2 and
// Neon have one), and a machine without vectors reads them as well as bytes.
// Panel of 16 channels: (16, K) int8, one channel after another; K is not padded.
//
// These kernels keep the fp32 order of the scalar reference, so that the results have its bits. That
// is why they alone call expf: another exponential would round differently.
#pragma once

#include "../microkernels.h"

#define MOE_PORTABLE_NR 16
#define MOE_PORTABLE_MR 4

#ifdef __cplusplus
extern "C" {
#endif

void moe_qs16_gemm_1x16__portable(size_t kc, const void *const *rows, const void *panel,
                                  int32_t *acc, size_t acc_stride);
void moe_qs16_gemm_2x16__portable(size_t kc, const void *const *rows, const void *panel,
                                  int32_t *acc, size_t acc_stride);
void moe_qs16_gemm_3x16__portable(size_t kc, const void *const *rows, const void *panel,
                                  int32_t *acc, size_t acc_stride);
void moe_qs16_gemm_4x16__portable(size_t kc, const void *const *rows, const void *panel,
                                  int32_t *acc, size_t acc_stride);
void moe_qs8_pack_16__portable(size_t k, const int8_t *const *channels, void *panel);
float moe_f32_absmax__portable(size_t n, const float *v);
float moe_f32_qs16_quantize__portable(size_t n, const float *v, float largest, void *row);
float moe_s32_swiglu_16__portable(size_t panels, const int32_t *acc, const float *scales,
                                  float x_scale, float *h);
void moe_s32_f32_dequantize__portable(size_t mr, size_t n, const int32_t *acc, size_t acc_stride,
                                      const float *scales, const float *h_scale, size_t offset,
                                      float *const *out);
void moe_f32_combine__portable(size_t n, const float *x, const float *const *parts,
                               const float *gates, size_t count, float *y);
void moe_f32_router_4x16__portable(size_t mr, size_t kc, const float *const *rows,
                                   const float *panel, int first, float *z, size_t z_stride);
float moe_f32_sum_squares__portable(size_t n, const float *v);
int moe_f32_sigmoid_scores__portable(size_t n, const float *z, const float *bias, float *affinity,
                                     float *score);
size_t moe_f32_find_above__portable(size_t begin, size_t n, const float *score, float threshold);

#ifdef __cplusplus
}
#endif
