// The AVX2 path's row of the table of microkernels.
#include "../path.h"
#include "candidates__avx2.h"
#include "table_f32__avx2.h"

namespace moe {
namespace packed {
namespace {

size_t row_bytes(size_t k) {
    return moe_round_up(MOE_ROW_HEAD_BYTES + 2 * moe_round_up(k, MOE_ROW_STEP), 64);
}

size_t panel_bytes(size_t k) { return moe_round_up(k, MOE_KR) * MOE_NR; }

constexpr moe_microkernels make_table() {
    moe_microkernels table = avx2_f32_kernels();
    table.gemm_name = "qs8_gemm_5x16c4__avx2";
    table.gemm_one_name = "qs8_gemm_1x16c4__avx2";
    table.mr = 5;
    table.nr = MOE_NR;
    table.kr = MOE_KR;
    table.row_bytes = row_bytes;
    table.panel_bytes = panel_bytes;
    table.pack_panel = moe_qs8_pack_16c4__avx2;
    table.gemm_panels[0] = moe_qs8_gemm_1x16c4__avx2;
    table.gemm_panels[1] = moe_qs8_gemm_2x16c4__avx2;
    table.gemm_panels[2] = moe_qs8_gemm_3x16c4__avx2;
    table.gemm_panels[3] = moe_qs8_gemm_4x16c4__avx2;
    table.gemm_panels[4] = moe_qs8_gemm_5x16c4__avx2;
    table.bytes_at_once = 64 * 1024; // they are read again from L2
    table.gemm_near = moe_qs8_gemm_near_1x16c4__avx2;
    table.quantize = moe_f32_qs8_quantize__avx2;
    table.candidates = &kCandidateKernels;
    return table;
}

constexpr moe_microkernels kTable = make_table();

} // namespace

const moe_microkernels &path_microkernels() { return kTable; }

void describe_fallback(moe_info *) {}

} // namespace packed
} // namespace moe
