// fp32 router outputs of a block of tokens.
#pragma once

#include "packed_weights.h"

namespace moe {
namespace packed {

// z[t * z_stride + e] = r_e . x_t. x: (tokens, D) f32; z_stride >= router_panels * router_nr. A
// token's z does not depend on the other tokens.
void router_rows(const moe_microkernels &mk, const PackedWeights &weights, const float *x,
                 std::size_t tokens, float *z, std::size_t z_stride);

// The same for a single token, panels [panel_begin, panel_end) only, in the order of router_one.
void router_row(const moe_microkernels &mk, const PackedWeights &weights, const float *x,
                std::size_t panel_begin, std::size_t panel_end, float *z);

} // namespace packed
} // namespace moe
