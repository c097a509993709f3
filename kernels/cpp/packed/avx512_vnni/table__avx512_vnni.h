// The AVX-512-VNNI path's row of the table of microkernels, from which the AMX path's starts. What has
// little to do is the AVX2 path's, compiled for this one: one token's router, the choice of experts.
#pragma once

#include "../avx2/table_f32__avx2.h"
#include "candidates__avx512_vnni.h"
#include "rows__avx512_vnni.h"

namespace moe {
namespace packed {
namespace {

inline size_t vnni_row_bytes(size_t k) { return moe_vnni_round_up(k, MOE_VNNI_ROW_STEP); }

inline size_t vnni_panel_bytes(size_t k) {
    const size_t weights = moe_vnni_round_up(k, MOE_VNNI_KR) * MOE_VNNI_NR;
    return MOE_VNNI_CORRECTION_BYTES + weights;
}

constexpr moe_microkernels make_vnni_table() {
    moe_microkernels table = avx2_f32_kernels();
    table.gemm_name = "qu8s8_gemm_8x32c4__avx512_vnni";
    table.gemm_one_name = "qu8s8_gemm_1x32c4__avx512_vnni";
    table.mr = 8;
    table.nr = MOE_VNNI_NR;
    table.kr = MOE_VNNI_KR;
    table.row_bytes = vnni_row_bytes;
    table.panel_bytes = vnni_panel_bytes;
    table.pack_panel = moe_qs8_pack_32c4__avx512_vnni;
    table.gemm_panels[0] = moe_qu8s8_gemm_1x32c4__avx512_vnni;
    table.gemm_panels[1] = moe_qu8s8_gemm_2x32c4__avx512_vnni;
    table.gemm_panels[2] = moe_qu8s8_gemm_3x32c4__avx512_vnni;
    table.gemm_panels[3] = moe_qu8s8_gemm_4x32c4__avx512_vnni;
    table.gemm_panels[4] = moe_qu8s8_gemm_5x32c4__avx512_vnni;
    table.gemm_panels[5] = moe_qu8s8_gemm_6x32c4__avx512_vnni;
    table.gemm_panels[6] = moe_qu8s8_gemm_7x32c4__avx512_vnni;
    table.gemm_panels[7] = moe_qu8s8_gemm_8x32c4__avx512_vnni;
    table.absmax = moe_f32_absmax__avx512_vnni;
    table.quantize = moe_f32_qu8_quantize__avx512_vnni;
    table.swiglu = moe_s32_swiglu_32__avx512_vnni;
    table.dequantize = moe_s32_f32_dequantize__avx512_vnni;
    table.combine = moe_f32_combine__avx512_vnni;
    table.router_mr = 12;
    table.router = moe_f32_router_12x16__avx512_vnni;
    table.candidates = &kVnniCandidateKernels;
    return table;
}

constexpr moe_microkernels kVnniMicrokernels = make_vnni_table();

} // namespace
} // namespace packed
} // namespace moe
