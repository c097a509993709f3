// One token: see single_token.h. Several: quantize and route all tokens (shared out by
// token), group them by expert, apply each expert to blocks of its rows (shared out by task), and
// combine (by token). One parallel region with three barriers.
#include "packed_plan.h"

#include <algorithm>
#include <atomic>
#include <vector>

#include "../thread_pool.h"
#include "describe.h"
#include "path.h"
#include "single_token.h"
#include "slices.h"
#include "token_block.h"

namespace moe {
namespace packed {
namespace {

class PackedPlan final : public Plan {
public:
    PackedPlan(const moe_weights &w, const moe_options &options, std::unique_ptr<ThreadPool> pool)
        : Plan(w, options, pool->threads()), mk_(path_microkernels()), pool_(std::move(pool)),
          table_(make_router_table(w)), packed_(mk_, weights, *pool_, Placement::kByExpert),
          candidates_(mk_, weights, table_, candidates_pay(w, max_tokens)),
          layer_{mk_, weights, packed_, table_, candidates_, timers},
          slice_(slice_tokens(w, max_tokens)), buffers_(layer_, slice_), buckets_(w, slice_),
          single_(layer_, *pool_, PanelShare::kAcrossExperts) {
        lanes_.reserve(static_cast<std::size_t>(threads));
        for (int32_t i = 0; i < threads; ++i) {
            lanes_.emplace_back(layer_);
        }
        pool_->run([&](int32_t thread, int32_t team) {
            lanes_[static_cast<std::size_t>(thread)].zero();
            buffers_.zero(static_share(slice_, thread, team));
        });
    }

    void forward(const float *x, float *y, int64_t n) noexcept override {
        for (int64_t t = 0; t < n; t += slice_) {
            const int32_t count = static_cast<int32_t>(std::min<int64_t>(slice_, n - t));
            const Tokens tokens{x + t * weights.d_model,          y + t * weights.d_model,
                                ids.data() + t * weights.top_k,   gates.data() + t * weights.top_k,
                                count, candidates_.ready() && candidates_pay(weights, count)};
            next_task_.store(0, std::memory_order_relaxed);
            pool_->run([&](int32_t thread, int32_t team) { run(thread, team, tokens); });
        }
    }

    void on_each_thread(void (*action)()) override {
        pool_->run([&](int32_t, int32_t) { action(); });
    }

    void describe(moe_info *info) const override {
        describe_microkernels(mk_, max_tokens, info);
        info->weight_bytes = packed_.bytes() + candidates_.bytes();
        info->workspace_bytes = buffers_.bytes() + buckets_.bytes() + single_.bytes() +
                                ids.bytes() + gates.bytes() + lanes_.front().bytes() * threads;
    }

private:
    void run(int32_t thread, int32_t team, const Tokens &tokens) {
        if (tokens.count == 1) {
            single_.run(thread, team, tokens.x, tokens.y, tokens.ids, tokens.gates);
            return;
        }
        const Share share = static_share(tokens.count, thread, team);
        const BlockView block = buffers_.view(tokens);
        BlockLane &lane = lanes_[static_cast<std::size_t>(thread)];
        route_and_quantize(layer_, block, share, lane, thread);
        wait(thread, team);
        if (thread == 0) {
            timers.enter(thread, MOE_PHASE_BUCKET);
            buckets_.fill(tokens.ids, tokens.count, static_cast<int32_t>(kBlockRows));
        }
        wait(thread, team);
        const int32_t tasks = buckets_.task_count();
        for (int32_t i = take_task(); i < tasks; i = take_task()) {
            apply_task(layer_, block, buckets_, buckets_.task(i), lane, thread);
        }
        lane.expert.tiles.release(mk_);
        wait(thread, team);
        combine(layer_, block, share, {0, weights.d_model}, lane, thread);
        timers.leave(thread);
    }

    int32_t take_task() { return next_task_.fetch_add(1, std::memory_order_relaxed); }

    void wait(int32_t thread, int32_t team) {
        if (team > 1) {
            timers.leave(thread);
            pool_->barrier(thread);
        }
    }

    const moe_microkernels &mk_;
    const std::unique_ptr<ThreadPool> pool_;
    const RouterTable table_;
    const PackedWeights packed_;
    const CandidateRouter candidates_;
    const Layer layer_;
    const int32_t slice_; // tokens computed at once
    BlockBuffers buffers_;
    Buckets buckets_;
    SingleToken single_;
    std::vector<BlockLane> lanes_; // one per thread
    alignas(64) std::atomic<int32_t> next_task_{0};
};

} // namespace

std::unique_ptr<Plan> make_packed_plan(const moe_weights &w, const moe_options &options) {
    auto pool = std::make_unique<ThreadPool>(options.threads, options.pin != 0);
    return std::make_unique<PackedPlan>(w, options, std::move(pool));
}

} // namespace packed
} // namespace moe
