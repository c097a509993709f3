// The AVX-VNNI path's own kernel of the candidate router. Rows and panels are those of
// ../avx2/candidates__avx2.h.
#pragma once

#include "../avx2/candidates__avx2.h"

#ifdef __cplusplus
extern "C" {
#endif

void moe_qs16_gemm_6x16c2__avx_vnni(size_t mr, size_t pairs, const int16_t *const *rows,
                                    const int16_t *panel, int first, int32_t *acc,
                                    size_t acc_stride);

#ifdef __cplusplus
}

namespace moe {
namespace packed {
extern const moe_candidate_kernels kAvxVnniCandidateKernels;
} // namespace packed
} // namespace moe
#endif
