// The AVX-VNNI path's row of the table of microkernels. What has no int8 product in it is the AVX2
// path's, compiled for this one.
#include "../avx2/table_f32__avx2.h"
#include "../path.h"
#include "candidates__avx_vnni.h"
#include "rows__avx_vnni.h"

namespace moe {
namespace packed {
namespace {

size_t row_bytes(size_t k) { return moe_round_up(k, 64); }

size_t panel_bytes(size_t k) { return MOE_CORRECTION_BYTES + moe_round_up(k, MOE_KR) * MOE_NR; }

constexpr moe_microkernels make_table() {
    moe_microkernels table = avx2_f32_kernels();
    table.gemm_name = "qu8s8_gemm_6x16c4__avx_vnni";
    table.gemm_one_name = "qu8s8_gemm_1x16c4__avx_vnni";
    table.mr = 6;
    table.nr = MOE_NR;
    table.kr = MOE_KR;
    table.row_bytes = row_bytes;
    table.panel_bytes = panel_bytes;
    table.pack_panel = moe_qs8_pack_16c4__avx_vnni;
    table.gemm_panels[0] = moe_qu8s8_gemm_1x16c4__avx_vnni;
    table.gemm_panels[1] = moe_qu8s8_gemm_2x16c4__avx_vnni;
    table.gemm_panels[2] = moe_qu8s8_gemm_3x16c4__avx_vnni;
    table.gemm_panels[3] = moe_qu8s8_gemm_4x16c4__avx_vnni;
    table.gemm_panels[4] = moe_qu8s8_gemm_5x16c4__avx_vnni;
    table.gemm_panels[5] = moe_qu8s8_gemm_6x16c4__avx_vnni;
    table.bytes_at_once = 64 * 1024; // as on the AVX2 path, whose tiles are as large
    table.quantize = moe_f32_qu8_quantize__avx_vnni;
    table.candidates = &kAvxVnniCandidateKernels;
    return table;
}

constexpr moe_microkernels kTable = make_table();

} // namespace

const moe_microkernels &path_microkernels() { return kTable; }

void describe_fallback(moe_info *) {}

} // namespace packed
} // namespace moe
