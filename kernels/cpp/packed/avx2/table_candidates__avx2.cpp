// The AVX2 path's kernels of the candidate router.
#include "candidates__avx2.h"
#include "rows__avx2.h"

namespace moe {
namespace packed {
namespace {

size_t row_values(size_t d) { return moe_round_up(d, MOE_ROW_STEP); }

size_t panel_values(size_t d) { return moe_round_up(d, 2) * MOE_NR; }

} // namespace

extern const moe_candidate_kernels kCandidateKernels = {
    6,
    MOE_NR,
    256, // 16 KB of a panel stay in L1 while the tokens pass
    row_values,
    panel_values,
    moe_qs16_pack_16c2__avx2,
    moe_f32_qs16_quantize__avx2,
    moe_qs16_gemm_6x16c2__avx2,
    moe_s32_score_bounds__avx2,
    moe_f32_dot__avx2,
    0,
};

} // namespace packed
} // namespace moe
