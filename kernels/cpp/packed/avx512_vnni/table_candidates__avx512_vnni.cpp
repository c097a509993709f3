// The AVX-512-VNNI path's kernels of the candidate router.
#include "../avx2/candidates__avx2.h"
#include "../avx2/rows__avx2.h"
#include "candidates__avx512_vnni.h"
#include "rows__avx512_vnni.h"

namespace moe {
namespace packed {
namespace {

size_t row_values(size_t d) { return moe_round_up(d, MOE_ROW_STEP); }

size_t panel_values(size_t d) { return moe_vnni_round_up(d, 2) * MOE_VNNI_NR; }

} // namespace

extern const moe_candidate_kernels kVnniCandidateKernels = {
    8,
    MOE_VNNI_NR,
    128, // 16 KB of a panel stay in L1 while the tokens pass
    row_values,
    panel_values,
    moe_qs16_pack_32c2__avx512_vnni,
    moe_f32_qs16_quantize__avx2,
    moe_qs16_gemm_8x32c2__avx512_vnni,
    moe_s32_score_bounds__avx512_vnni,
    moe_f32_dot__avx2,
    0,
};

} // namespace packed
} // namespace moe
