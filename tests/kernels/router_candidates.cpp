// The candidate router by itself, with its bounds and candidates laid open, for ctypes.
#include "packed/path.h"
#include "packed/router_candidates.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

// x: (n, D); ids, gates: (n, K); counts: (n), 0 where all experts were scored; lower, upper: (n, E),
// written where counts is not 0. Tokens pass in blocks of `block`; bounds and counts need block 1.
// Returns 0, or 1 when the router is not ready.
EXPORT int route_by_candidates(const float *router, const float *bias, int d_model,
                               int num_experts, int top_k, const float *x, int n, int block,
                               int *ids, float *gates, int *counts, float *lower, float *upper) {
    moe_weights w{};
    w.d_model = d_model;
    w.d_ff = 1;
    w.num_experts = num_experts;
    w.top_k = top_k;
    w.router = router;
    w.bias = bias;
    w.n_group = w.topk_group = 1;
    w.routed_scaling_factor = 1.0f;
    const moe_microkernels &mk = moe::packed::path_microkernels();
    const moe::RouterTable table = moe::make_router_table(w);
    const moe::packed::CandidateRouter candidates(mk, w, table, true);
    if (!candidates.ready()) {
        return 1;
    }
    moe::packed::CandidateScratch scratch =
        candidates.scratch(static_cast<std::size_t>(block));
    moe::packed::RouteScratch route(w);
    for (int t = 0; t < n; t += block) {
        const int tokens = std::min(block, n - t);
        candidates.route(x + static_cast<int64_t>(t) * d_model, static_cast<std::size_t>(tokens),
                         scratch, route, ids + t * top_k, gates + t * top_k);
        counts[t] = scratch.count;
        if (scratch.count != 0) {
            std::copy_n(scratch.lower.data(), num_experts, lower + t * num_experts);
            std::copy_n(scratch.upper.data(), num_experts, upper + t * num_experts);
        }
    }
    return 0;
}
