// Signatures of the AMX kernels of the candidate router, which multiply int16 by tiles of int8.
//
// q = 256 high + low with a signed and an unsigned byte, so a product of two int16 is four of bytes, for each
// of which there is an instruction: 256 products a cycle where vpdpwssd makes 64 on two ports.
//
// Row16, D padded with zeros to D' = round_up(D, 64), an odd number of lines long (see rows__amx_int8.h):
//   (D'/64, 2, 64)           for 64 consecutive d their high bytes, then their low ones
// Panel16 of 32 experts, two of 16 in turn:
//   (2, D'/64, 2, 16, 16, 4) for 64 consecutive d a B tile of high bytes, then one of low ones
#pragma once

#include "../candidate_kernels.h"
#include "rows__amx_int8.h"

#ifdef __cplusplus
extern "C" {
#endif

static inline size_t moe_amx_row16_values(size_t d) {
    return 32 * (moe_vnni_round_up(d, MOE_AMX_KR) / 32 | 1);
}

static inline size_t moe_amx_panel16_values(size_t d) {
    return moe_vnni_round_up(d, MOE_AMX_KR) * MOE_VNNI_NR;
}

void moe_qs16_gemm_16x32c64__amx_int8(size_t mr, size_t pairs, const int16_t *const *rows,
                                      const int16_t *panel, int first, int32_t *acc,
                                      size_t acc_stride);
void moe_qs16_pack_32c64__amx_int8(size_t k, const int16_t *const *channels, int16_t *panel);
float moe_f32_qs16_quantize__amx_int8(size_t n, const float *v, float factor, int16_t *row);

#ifdef __cplusplus
}

namespace moe {
namespace packed {
extern const moe_candidate_kernels kAmxCandidateKernels;
} // namespace packed
} // namespace moe
#endif
