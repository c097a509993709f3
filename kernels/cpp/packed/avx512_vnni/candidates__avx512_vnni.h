// Signatures of the AVX-512-VNNI kernels of the candidate router.
//
// A panel16 holds (D"/2, 32, 2) int16 for D" = round_up(D, 2): two consecutive d of an expert in one
// 32-bit lane. Rows are those of ../avx2/candidates__avx2.h.
#pragma once

#include "../candidate_kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

void moe_qs16_gemm_8x32c2__avx512_vnni(size_t mr, size_t pairs, const int16_t *const *rows,
                                       const int16_t *panel, int first, int32_t *acc,
                                       size_t acc_stride);
void moe_qs16_pack_32c2__avx512_vnni(size_t k, const int16_t *const *channels, int16_t *panel);
void moe_s32_score_bounds__avx512_vnni(size_t n, const int32_t *acc,
                                       const moe_candidate_rows *rows,
                                       const moe_candidate_token *token, float *lower,
                                       float *upper);

#ifdef __cplusplus
}

namespace moe {
namespace packed {
extern const moe_candidate_kernels kVnniCandidateKernels;
} // namespace packed
} // namespace moe
#endif
