// The AMX path's kernels of the candidate router: products by tiles, the rest as without.
#include "../avx2/candidates__avx2.h"
#include "../avx512_vnni/candidates__avx512_vnni.h"
#include "candidates__amx_int8.h"

namespace moe {
namespace packed {

extern const moe_candidate_kernels kAmxCandidateKernels = {
    MOE_AMX_TILE_ROWS,
    MOE_VNNI_NR,
    size_t{1} << 20, // all of d: a panel of 512 d is read from L2 by sixteen tokens at a time
    moe_amx_row16_values,
    moe_amx_panel16_values,
    moe_qs16_pack_32c64__amx_int8,
    moe_f32_qs16_quantize__amx_int8,
    moe_qs16_gemm_16x32c64__amx_int8,
    moe_s32_score_bounds__avx512_vnni,
    moe_f32_dot__avx2,
    1,
};

} // namespace packed
} // namespace moe
