// What the tables of all x86 paths have in common: the fp32 kernels of the AVX2 path, compiled for theirs.
#pragma once

#include "rows__avx2.h"

namespace moe {
namespace packed {
namespace {

constexpr moe_microkernels avx2_f32_kernels() {
    moe_microkernels table{};
    table.absmax = moe_f32_absmax__avx2;
    table.swiglu = moe_s32_swiglu_16__avx2;
    table.dequantize = moe_s32_f32_dequantize__avx2;
    table.combine = moe_f32_combine__avx2;
    table.router_mr = 6;
    table.router_nr = 16;
    table.router_kc = 256;
    table.router = moe_f32_router_6x16__avx2;
    table.router_one = moe_f32_router_1x16__avx2;
    table.sum_squares = moe_f32_sum_squares__avx2;
    table.sigmoid_scores = moe_f32_sigmoid_scores__avx2;
    table.find_above = moe_f32_find_above__avx2;
    return table;
}

} // namespace
} // namespace packed
} // namespace moe
