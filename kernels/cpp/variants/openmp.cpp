// openmp: the reference layer, tokens shared statically among threads.
#include <vector>

#include "parallel.h"
#include "token_layer.h"
#include "variant.h"

namespace moe {
namespace {

class OpenmpPlan final : public Plan {
public:
    OpenmpPlan(const moe_weights &w, const moe_options &options)
        : Plan(w, options, available_threads(options.threads)), table_(make_router_table(w)),
          team_(threads, pin) {
        for (int32_t i = 0; i < threads; ++i) {
            scratch_.emplace_back(w);
        }
        run_team(threads, [&](int32_t thread, int32_t) {
            scratch_[static_cast<std::size_t>(thread)].zero();
        });
    }

    void forward(const float *x, float *y, int64_t n) noexcept override {
        run_team(threads, [&](int32_t thread, int32_t team) {
            const Share tokens = static_share(n, thread, team);
            for (int64_t t = tokens.begin; t < tokens.end; ++t) {
                forward_token(weights, table_, x + t * weights.d_model, y + t * weights.d_model,
                              scratch_[static_cast<std::size_t>(thread)],
                              ids.data() + t * weights.top_k, gates.data() + t * weights.top_k,
                              timers, thread);
            }
        });
    }

    void describe(moe_info *info) const override {
        info->weight_bytes = unpacked_weight_bytes(weights);
        info->workspace_bytes = scratch_.front().bytes() * threads + ids.bytes() + gates.bytes();
    }

private:
    const RouterTable table_;
    PinnedTeam team_;
    std::vector<TokenScratch> scratch_; // one per thread
};

std::unique_ptr<Plan> make_openmp_plan(const moe_weights &w, const moe_options &options) {
    return std::make_unique<OpenmpPlan>(w, options);
}

} // namespace
} // namespace moe

MOE_REGISTER_VARIANT("openmp", moe::make_openmp_plan)
