// What the tables of the RISC-V paths have in common: the fp32 kernels, and the products by vectors.
#pragma once

#include "rows__rvv.h"

namespace moe {
namespace packed {
namespace {

size_t rvv_row_bytes(size_t k) { return (k + 63) / 64 * 64; }

size_t rvv_panel_bytes(size_t k) { return (k * MOE_RVV_NR + 63) / 64 * 64; }

constexpr moe_microkernels rvv_f32_kernels() {
    moe_microkernels table{};
    table.row_bytes = rvv_row_bytes;
    table.absmax = moe_f32_absmax__rvv;
    table.quantize = moe_f32_qs8_quantize__rvv;
    table.swiglu = moe_s32_swiglu_16__rvv;
    table.dequantize = moe_s32_f32_dequantize__rvv;
    table.combine = moe_f32_combine__rvv;
    table.router_mr = 8;
    table.router_nr = MOE_RVV_NR;
    table.router_kc = 256;
    table.router = moe_f32_router_8x16__rvv;
    table.router_one = moe_f32_router_8x16__rvv;
    table.sum_squares = moe_f32_sum_squares__rvv;
    table.sigmoid_scores = moe_f32_sigmoid_scores__rvv;
    table.find_above = moe_f32_find_above__rvv;
    return table;
}

constexpr moe_microkernels rvv_kernels() {
    moe_microkernels table = rvv_f32_kernels();
    table.gemm_name = "qs8_gemm_8x16__rvv";
    table.gemm_one_name = "qs8_gemm_1x16__rvv";
    table.mr = MOE_RVV_MR;
    table.nr = MOE_RVV_NR;
    table.kr = 1;
    table.panel_bytes = rvv_panel_bytes;
    table.pack_panel = moe_qs8_pack_16__rvv;
    table.gemm[0] = moe_qs8_gemm_1x16__rvv;
    table.gemm[1] = moe_qs8_gemm_2x16__rvv;
    table.gemm[2] = moe_qs8_gemm_3x16__rvv;
    table.gemm[3] = moe_qs8_gemm_4x16__rvv;
    table.gemm[4] = moe_qs8_gemm_5x16__rvv;
    table.gemm[5] = moe_qs8_gemm_6x16__rvv;
    table.gemm[6] = moe_qs8_gemm_7x16__rvv;
    table.gemm[7] = moe_qs8_gemm_8x16__rvv;
    return table;
}

} // namespace
} // namespace packed
} // namespace moe
