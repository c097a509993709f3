// A serial plan over token_layer.h, for the variants that differ in compiler flags only.
#pragma once

#include <cstdio>

#include "token_layer.h"
#include "variant.h"

namespace moe {
namespace {

class ReferencePlan final : public Plan {
public:
    ReferencePlan(const moe_weights &w, const moe_options &options)
        : Plan(w, options, 1), table_(make_router_table(w)), scratch_(w),
          asked_threads_(options.threads) {
        scratch_.zero();
    }

    void forward(const float *x, float *y, int64_t n) noexcept override {
        for (int64_t t = 0; t < n; ++t) {
            forward_token(weights, table_, x + t * weights.d_model, y + t * weights.d_model,
                          scratch_, ids.data() + t * weights.top_k,
                          gates.data() + t * weights.top_k, timers, 0);
        }
    }

    void describe(moe_info *info) const override {
        info->weight_bytes = unpacked_weight_bytes(weights);
        info->workspace_bytes = scratch_.bytes() + ids.bytes() + gates.bytes();
        if (asked_threads_ > 1) {
            std::snprintf(info->note, sizeof info->note,
                          "runs on one thread by design; %d were asked for", asked_threads_);
        }
    }

private:
    const RouterTable table_;
    TokenScratch scratch_;
    const int32_t asked_threads_;
};

std::unique_ptr<Plan> make_reference_plan(const moe_weights &w, const moe_options &options) {
    return std::make_unique<ReferencePlan>(w, options);
}

} // namespace
} // namespace moe
