// dispatch_table.h has the paths, the thresholds and the choice, which depends on the layer's
// sizes, the number of tokens, the threads and what a region of theirs costs. No path changes a
// value: the same bits come out with any number of threads.
#include "dispatched_plan.h"

#include <algorithm>
#include <vector>

#include "../thread_pool.h"
#include "describe.h"
#include "dispatch_table.h"
#include "expert_owners.h"
#include "few_tokens.h"
#include "path.h"
#include "single_token.h"
#include "slices.h"
#include "token_block.h"

namespace moe {
namespace packed {
namespace {

constexpr int32_t kCallingThread = 0, kAlone = 1;

class DispatchedPlan final : public Plan {
public:
    DispatchedPlan(const moe_weights &w, const moe_options &options,
                   std::unique_ptr<ThreadPool> pool)
        : Plan(w, options, pool->threads()), mk_(path_microkernels()), pool_(std::move(pool)),
          thresholds_(dispatch_thresholds(MOE_ISA_NAME)), region_ns_(pool_->region_cost_ns()),
          table_(make_router_table(w)), packed_(mk_, weights, *pool_, placement()),
          candidates_(mk_, weights, table_, candidates_pay(w, max_tokens)),
          layer_{mk_, weights, packed_, table_, candidates_, timers},
          slice_(slice_tokens(w, max_tokens)), buffers_(layer_, slice_), owners_(threads),
          single_(layer_, *pool_, PanelShare::kSamePanels),
          few_(layer_, *pool_, std::min(slice_, kManyTokens - 1)) {
        lanes_.reserve(static_cast<std::size_t>(threads));
        buckets_.reserve(static_cast<std::size_t>(threads));
        for (int32_t i = 0; i < threads; ++i) {
            lanes_.emplace_back(layer_);
            // The first ones also serve when one thread groups all tokens.
            buckets_.emplace_back(w, i == 0 ? slice_ : share_of_thread());
        }
        pool_->run([&](int32_t thread, int32_t team) {
            lanes_[static_cast<std::size_t>(thread)].zero();
            buffers_.zero(static_share(slice_, thread, team));
        });
    }

    void forward(const float *x, float *y, int64_t n) noexcept override {
        for (int64_t t = 0; t < n; t += slice_) {
            const int32_t count = static_cast<int32_t>(std::min<int64_t>(slice_, n - t));
            forward_slice({x + t * weights.d_model, y + t * weights.d_model,
                           ids.data() + t * weights.top_k, gates.data() + t * weights.top_k, count,
                           candidates_.ready() && candidates_pay(weights, count)});
        }
    }

    const char *path(int64_t n) const override {
        return kDispatchPathNames[static_cast<int>(choose(std::min<int64_t>(n, slice_)))];
    }

    void on_each_thread(void (*action)()) override {
        pool_->run([&](int32_t, int32_t) { action(); });
    }

    void describe(moe_info *info) const override {
        describe_microkernels(mk_, max_tokens, info);
        info->weight_bytes = packed_.bytes() + candidates_.bytes();
        info->workspace_bytes = buffers_.bytes() + single_.bytes() + few_.bytes() + ids.bytes() +
                                gates.bytes() + lanes_.front().bytes() * threads;
        for (const Buckets &buckets : buckets_) {
            info->workspace_bytes += buckets.bytes();
        }
    }

private:
    DispatchPath choose(int64_t tokens) const {
        return dispatch_path(weights, thresholds_, region_ns_, tokens, threads);
    }

    // Weights lie near the thread that uses them in forwards of max_tokens.
    Placement placement() const {
        const DispatchPath usual = choose(max_tokens);
        return usual == DispatchPath::kOneTokenTeam || usual == DispatchPath::kFewTokens
                   ? Placement::kByPanel
                   : Placement::kByExpert;
    }

    int32_t share_of_thread() const { return (slice_ + threads - 1) / threads; }

    void forward_slice(const Tokens &tokens) {
        switch (choose(tokens.count)) {
        case DispatchPath::kOneToken:
            single_.run(kCallingThread, kAlone, tokens.x, tokens.y, tokens.ids, tokens.gates);
            break;
        case DispatchPath::kOneTokenTeam:
            pool_->run([&](int32_t thread, int32_t team) {
                single_.run(thread, team, tokens.x, tokens.y, tokens.ids, tokens.gates);
            });
            break;
        case DispatchPath::kBlock:
            run_by_token(kCallingThread, kAlone, tokens);
            break;
        case DispatchPath::kFewTokens:
            pool_->run([&](int32_t thread, int32_t team) {
                few_.run(thread, team, buffers_.view(tokens),
                         lanes_[static_cast<std::size_t>(thread)]);
            });
            break;
        case DispatchPath::kByToken:
            pool_->run(
                [&](int32_t thread, int32_t team) { run_by_token(thread, team, tokens); });
            break;
        case DispatchPath::kByExpert:
            pool_->run(
                [&](int32_t thread, int32_t team) { run_by_expert(thread, team, tokens); });
            break;
        }
    }

    // Everything of a share of the tokens.
    void run_by_token(int32_t thread, int32_t team, const Tokens &tokens) {
        const Share share = static_share(tokens.count, thread, team);
        // More than once only when the system gave fewer threads than the buffers are made for.
        const int64_t largest = team == kAlone ? slice_ : share_of_thread();
        for (int64_t t = share.begin; t < share.end; t += largest) {
            run_block(thread, tokens, {t, std::min(t + largest, share.end)});
        }
    }

    void run_block(int32_t thread, const Tokens &tokens, Share share) {
        const BlockView block = buffers_.view(tokens.part(weights, share), share.begin);
        const Share all{0, block.tokens.count};
        BlockLane &lane = lanes_[static_cast<std::size_t>(thread)];
        Buckets &buckets = buckets_[static_cast<std::size_t>(thread)];
        route_and_quantize(layer_, block, all, lane, thread);
        timers.enter(thread, MOE_PHASE_BUCKET);
        buckets.fill(block.tokens.ids, block.tokens.count, static_cast<int32_t>(kBlockRows));
        for (int32_t i = 0; i < buckets.task_count(); ++i) {
            apply_task(layer_, block, buckets, buckets.task(i), lane, thread);
        }
        lane.expert.tiles.release(mk_);
        combine(layer_, block, all, {0, weights.d_model}, lane, thread);
        timers.leave(thread);
    }

    void run_by_expert(int32_t thread, int32_t team, const Tokens &tokens) {
        const Share share = static_share(tokens.count, thread, team);
        const BlockView block = buffers_.view(tokens);
        BlockLane &lane = lanes_[static_cast<std::size_t>(thread)];
        Buckets &buckets = buckets_[0];
        route_and_quantize(layer_, block, share, lane, thread);
        wait(thread);
        if (thread == 0) {
            timers.enter(thread, MOE_PHASE_BUCKET);
            buckets.fill(tokens.ids, tokens.count, static_cast<int32_t>(kBlockRows));
            owners_.share_out(buckets, weights, team);
        }
        wait(thread);
        for (int32_t i = owners_.take(thread); i >= 0; i = owners_.take(thread)) {
            apply_task(layer_, block, buckets, buckets.task(i), lane, thread);
        }
        lane.expert.tiles.release(mk_);
        wait(thread);
        combine(layer_, block, share, {0, weights.d_model}, lane, thread);
        timers.leave(thread);
    }

    void wait(int32_t thread) {
        timers.leave(thread);
        pool_->barrier(thread);
    }

    const moe_microkernels &mk_;
    const std::unique_ptr<ThreadPool> pool_;
    const DispatchThresholds &thresholds_;
    const double region_ns_;
    const RouterTable table_;
    const PackedWeights packed_;
    const CandidateRouter candidates_;
    const Layer layer_;
    const int32_t slice_; // tokens computed at once
    BlockBuffers buffers_;
    ExpertOwners owners_;
    SingleToken single_;
    FewTokens few_;
    std::vector<BlockLane> lanes_; // one per thread
    std::vector<Buckets> buckets_; // one per thread
};

} // namespace

std::unique_ptr<Plan> make_dispatched_plan(const moe_weights &w, const moe_options &options) {
    auto pool = std::make_unique<ThreadPool>(options.threads, options.pin != 0);
    return std::make_unique<DispatchedPlan>(w, options, std::move(pool));
}

} // namespace packed
} // namespace moe
