// Layout of activation rows and weight panels on the path of RISC-V vectors 1.0, and the signatures
// of its kernels.
//
// Row of one token: K int8, padded with zeros to a multiple of 32 (the IME path reads whole tiles).
// Panel of 16 channels: (K, 16) int8, the weights of one k together; K is not padded.
//
// Nothing depends on the length of a vector register: every loop asks vsetvl how many elements a
// step takes. A product of 16 int32 lanes takes one step of LMUL 2 from VLEN 256 on and two at 128.
#pragma once

#include "../microkernels.h"

#define MOE_RVV_NR 16
#define MOE_RVV_MR 8
#define MOE_RVV_ROW_STEP 32

#ifdef __cplusplus
extern "C" {
#endif

static inline size_t moe_rvv_row_bytes(size_t k) {
    return (k + MOE_RVV_ROW_STEP - 1) / MOE_RVV_ROW_STEP * MOE_RVV_ROW_STEP;
}

#define MOE_RVV_GEMM(m)                                                                            \
    void moe_qs8_gemm_##m##x16__rvv(size_t kc, const void *const *rows, const void *panel,         \
                                    int32_t *acc, size_t acc_stride)
MOE_RVV_GEMM(1);
MOE_RVV_GEMM(2);
MOE_RVV_GEMM(3);
MOE_RVV_GEMM(4);
MOE_RVV_GEMM(5);
MOE_RVV_GEMM(6);
MOE_RVV_GEMM(7);
MOE_RVV_GEMM(8);
void moe_qs8_pack_16__rvv(size_t k, const int8_t *const *channels, void *panel);
float moe_f32_absmax__rvv(size_t n, const float *v);
float moe_f32_qs8_quantize__rvv(size_t n, const float *v, float largest, void *row);
float moe_s32_swiglu_16__rvv(size_t panels, const int32_t *acc, const float *scales, float x_scale,
                             float *h);
void moe_s32_f32_dequantize__rvv(size_t mr, size_t n, const int32_t *acc, size_t acc_stride,
                                 const float *scales, const float *h_scale, size_t offset,
                                 float *const *out);
void moe_f32_combine__rvv(size_t n, const float *x, const float *const *parts, const float *gates,
                          size_t count, float *y);
void moe_f32_router_8x16__rvv(size_t mr, size_t kc, const float *const *rows, const float *panel,
                              int first, float *z, size_t z_stride);
float moe_f32_sum_squares__rvv(size_t n, const float *v);
int moe_f32_sigmoid_scores__rvv(size_t n, const float *z, const float *bias, float *affinity,
                                float *score);
size_t moe_f32_find_above__rvv(size_t begin, size_t n, const float *score, float threshold);
void moe_f32_exp__rvv(size_t n, const float *v, float *out);

#ifdef __cplusplus
}
#endif
