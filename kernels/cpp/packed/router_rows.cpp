// Router outputs panel by panel: a block of a panel stays in L1 while all tokens pass.
#include "router_rows.h"

#include <algorithm>

namespace moe {
namespace packed {
namespace {

void multiply(const moe_microkernels &mk, moe_router_fn router, const PackedWeights &weights,
              const float *x, std::size_t tokens, std::size_t panel_begin, std::size_t panel_end,
              float *z, std::size_t z_stride) {
    const std::size_t d_model = weights.shape.d_model;
    // A block of a panel (router_kc x router_nr) stays in L1 while all tokens pass.
    for (std::size_t p = panel_begin; p < panel_end; ++p) {
        for (std::size_t d = 0; d < d_model; d += mk.router_kc) {
            const std::size_t kc = std::min(mk.router_kc, d_model - d);
            const float *block = weights.router_panel(p) + d * mk.router_nr;
            for (std::size_t t = 0; t < tokens; t += mk.router_mr) {
                const float *rows[MOE_MAX_MR];
                const std::size_t mr = std::min(mk.router_mr, tokens - t);
                for (std::size_t m = 0; m < mr; ++m) {
                    rows[m] = x + (t + m) * d_model + d;
                }
                router(mr, kc, rows, block, d == 0, z + t * z_stride + p * mk.router_nr, z_stride);
            }
        }
    }
}

} // namespace

void router_rows(const moe_microkernels &mk, const PackedWeights &weights, const float *x,
                 std::size_t tokens, float *z, std::size_t z_stride) {
    multiply(mk, mk.router, weights, x, tokens, 0, weights.router_panels(), z, z_stride);
}

void router_row(const moe_microkernels &mk, const PackedWeights &weights, const float *x,
                std::size_t panel_begin, std::size_t panel_end, float *z) {
    multiply(mk, mk.router_one, weights, x, 1, panel_begin, panel_end, z, 0);
}

} // namespace packed
} // namespace moe
