// Signatures of the AVX2 kernels of the candidate router.
//
// A row16 is padded to a multiple of 32 values; a panel16 holds (D"/2, 16, 2) int16 for D" =
// round_up(D, 2): two consecutive d of an expert in one 32-bit lane.
#pragma once

#include "../candidate_kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

void moe_qs16_gemm_6x16c2__avx2(size_t mr, size_t pairs, const int16_t *const *rows,
                                const int16_t *panel, int first, int32_t *acc, size_t acc_stride);
void moe_qs16_pack_16c2__avx2(size_t k, const int16_t *const *channels, int16_t *panel);
float moe_f32_qs16_quantize__avx2(size_t n, const float *v, float factor, int16_t *row);
void moe_s32_score_bounds__avx2(size_t n, const int32_t *acc, const moe_candidate_rows *rows,
                                const moe_candidate_token *token, float *lower, float *upper);
float moe_f32_dot__avx2(size_t n, const float *v, const float *w);

#ifdef __cplusplus
}

namespace moe {
namespace packed {
extern const moe_candidate_kernels kCandidateKernels;
} // namespace packed
} // namespace moe
#endif
