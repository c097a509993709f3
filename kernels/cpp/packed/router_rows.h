// fp32 router outputs of a block of tokens.
#pragma once

#include "packed_weights.h"

namespace moe {
namespace packed {

// z[t * z_stride + e] = r_e . x_t for panels [panel_begin, panel_end) of experts.
// x: (tokens, D) f32; z_stride >= router_panels * router_nr.
void router_rows(const moe_microkernels &mk, const PackedWeights &weights, const float *x,
                 std::size_t tokens, std::size_t panel_begin, std::size_t panel_end, float *z,
                 std::size_t z_stride);

} // namespace packed
} // namespace moe
