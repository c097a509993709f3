// The portable path's row of the table of microkernels.
#include "../path.h"
#include "rows__portable.h"

namespace moe {
namespace packed {
namespace {

size_t row_bytes(size_t k) { return (2 * k + 63) / 64 * 64; }

size_t panel_bytes(size_t k) { return (k * MOE_PORTABLE_NR + 63) / 64 * 64; }

constexpr moe_microkernels make_table() {
    moe_microkernels table{};
    table.gemm_name = "qs16_gemm_4x16__portable";
    table.gemm_one_name = "qs16_gemm_1x16__portable";
    table.mr = MOE_PORTABLE_MR;
    table.nr = MOE_PORTABLE_NR;
    table.kr = 1;
    table.row_bytes = row_bytes;
    table.panel_bytes = panel_bytes;
    table.pack_panel = moe_qs8_pack_16__portable;
    table.gemm[0] = moe_qs16_gemm_1x16__portable;
    table.gemm[1] = moe_qs16_gemm_2x16__portable;
    table.gemm[2] = moe_qs16_gemm_3x16__portable;
    table.gemm[3] = moe_qs16_gemm_4x16__portable;
    table.absmax = moe_f32_absmax__portable;
    table.quantize = moe_f32_qs16_quantize__portable;
    table.swiglu = moe_s32_swiglu_16__portable;
    table.dequantize = moe_s32_f32_dequantize__portable;
    table.combine = moe_f32_combine__portable;
    table.router_mr = 4;
    table.router_nr = MOE_PORTABLE_NR;
    table.router_kc = size_t{1} << 20; // one block: a sum is never interrupted
    table.router = moe_f32_router_4x16__portable;
    table.router_one = moe_f32_router_4x16__portable;
    table.sum_squares = moe_f32_sum_squares__portable;
    table.sigmoid_scores = moe_f32_sigmoid_scores__portable;
    table.find_above = moe_f32_find_above__portable;
    return table;
}

constexpr moe_microkernels kTable = make_table();

} // namespace

const moe_microkernels &path_microkernels() { return kTable; }

void describe_fallback(moe_info *) {}

} // namespace packed
} // namespace moe
