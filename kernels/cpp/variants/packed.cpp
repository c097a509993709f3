// packed: weights packed at prepare, exact int8 microkernels, several tokens per weight load.
//
// One token: see packed/single_token.h. Several: quantize and route all tokens (shared out by
// token), group them by expert, apply each expert to blocks of its rows (shared out by task), and
// combine (by token). One parallel region with three barriers.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <vector>

#include "packed/buckets.h"
#include "packed/expert_rows.h"
#include "packed/path.h"
#include "packed/route.h"
#include "packed/router_candidates.h"
#include "packed/router_rows.h"
#include "packed/single_token.h"
#include "thread_pool.h"
#include "share.h"
#include "variant.h"

namespace moe {
namespace packed {
namespace {

constexpr std::size_t kRouterBlockTokens = 96; // z and x of a block stay in L2
constexpr int64_t kPartsBytes = int64_t{256} << 20; // experts' outputs kept at once
constexpr int64_t kMinSliceTokens = 16;
constexpr int64_t kMaxSliceTokens = 4096;

// Tokens computed at once: as many as the memory for the experts' outputs allows.
int32_t slice_tokens(const moe_weights &w, int32_t max_tokens) {
    const int64_t per_token = (int64_t{w.top_k} + 1) * w.d_model * 4;
    const int64_t fitting =
        std::clamp(kPartsBytes / per_token, kMinSliceTokens, kMaxSliceTokens);
    return static_cast<int32_t>(std::min<int64_t>(max_tokens, fitting));
}

struct Lane { // buffers of one thread
    Lane(const moe_microkernels &mk, const moe_weights &w, const PackedWeights &packed,
         const CandidateRouter &router)
        : route(w), candidates(router.scratch(kRouterBlockTokens)), expert(mk, packed.shape),
          z(kRouterBlockTokens * packed.router_panels() * mk.router_nr),
          parts(static_cast<std::size_t>(w.top_k + 1)), gates(parts.size()) {}
    void zero() {
        route.zero();
        candidates.zero();
        expert.zero();
        z.zero();
        parts.zero();
        gates.zero();
    }
    int64_t bytes() const {
        return route.bytes() + candidates.bytes() + expert.bytes() + z.bytes() + parts.bytes() +
               gates.bytes();
    }

    RouteScratch route;
    CandidateScratch candidates;
    ExpertScratch expert;
    AlignedArray<float> z;             // (kRouterBlockTokens, E padded)
    AlignedArray<const float *> parts; // (K + 1)
    AlignedArray<float> gates;         // (K + 1)
};

class PackedPlan final : public Plan {
public:
    PackedPlan(const moe_weights &w, const moe_options &options, std::unique_ptr<ThreadPool> pool)
        : Plan(w, options, pool->threads()), mk_(path_microkernels()), pool_(std::move(pool)),
          table_(make_router_table(w)), packed_(mk_, weights, *pool_),
          candidates_(mk_, weights, table_, candidates_pay(w, max_tokens)),
          slice_(slice_tokens(w, max_tokens)), x_row_bytes_(mk_.row_bytes(packed_.shape.d_model)),
          x_rows_(static_cast<std::size_t>(slice_) * x_row_bytes_),
          x_scale_(static_cast<std::size_t>(slice_)),
          parts_(static_cast<std::size_t>(slice_) *
                 static_cast<std::size_t>(w.top_k + w.has_shared) * packed_.shape.d_padded),
          buckets_(w, slice_),
          single_(mk_, weights, packed_, table_, *pool_, timers) {
        lanes_.reserve(static_cast<std::size_t>(threads));
        for (int32_t i = 0; i < threads; ++i) {
            lanes_.emplace_back(mk_, weights, packed_, candidates_);
        }
        pool_->run([&](int32_t thread, int32_t) {
            lanes_[static_cast<std::size_t>(thread)].zero();
        });
        x_rows_.zero();
        x_scale_.zero();
        parts_.zero();
    }

    void forward(const float *x, float *y, int64_t n) noexcept override {
        for (int64_t t = 0; t < n; t += slice_) {
            const int32_t count = static_cast<int32_t>(std::min<int64_t>(slice_, n - t));
            const Slice slice{x + t * weights.d_model, y + t * weights.d_model,
                              ids.data() + t * weights.top_k, gates.data() + t * weights.top_k,
                              count};
            next_task_.store(0, std::memory_order_relaxed);
            pool_->run([&](int32_t thread, int32_t team) { run(thread, team, slice); });
        }
    }

    void on_each_thread(void (*action)()) override {
        pool_->run([&](int32_t, int32_t) { action(); });
    }

    void describe(moe_info *info) const override {
        const bool one = max_tokens == 1; // then no other tile can run
        std::snprintf(info->microkernel, sizeof info->microkernel, "%s",
                      one ? mk_.gemm_one_name : mk_.gemm_name);
        info->mr = one ? 1 : static_cast<int32_t>(mk_.mr);
        info->nr = static_cast<int32_t>(mk_.nr);
        info->kr = static_cast<int32_t>(mk_.kr);
        info->weight_bytes = packed_.bytes() + candidates_.bytes();
        info->workspace_bytes = x_rows_.bytes() + x_scale_.bytes() + parts_.bytes() +
                                buckets_.bytes() + single_.bytes() + ids.bytes() + gates.bytes() +
                                lanes_.front().bytes() * threads;
    }

private:
    struct Slice {
        const float *x;
        float *y;
        int32_t *ids;
        float *gates;
        int32_t count;
    };

    void run(int32_t thread, int32_t team, const Slice &slice) {
        if (slice.count == 1) {
            single_.run(thread, team, slice.x, slice.y, slice.ids, slice.gates);
            return;
        }
        const Share tokens = static_share(slice.count, thread, team);
        Lane &lane = lanes_[static_cast<std::size_t>(thread)];
        route_and_quantize(lane, thread, tokens, slice);
        wait(thread, team);
        if (thread == 0) {
            timers.enter(thread, MOE_PHASE_BUCKET);
            buckets_.fill(slice.ids, slice.count, static_cast<int32_t>(kBlockRows));
        }
        wait(thread, team);
        apply_experts(lane, thread, slice);
        wait(thread, team);
        combine(lane, thread, tokens, slice);
        timers.leave(thread);
    }

    void wait(int32_t thread, int32_t team) {
        if (team > 1) {
            timers.leave(thread);
            pool_->barrier(thread);
        }
    }

    void route_and_quantize(Lane &lane, int32_t thread, Share tokens, const Slice &slice) {
        const std::size_t d_model = packed_.shape.d_model;
        const std::size_t top_k = static_cast<std::size_t>(weights.top_k);
        const std::size_t stride = packed_.router_panels() * mk_.router_nr;
        const std::size_t end = static_cast<std::size_t>(tokens.end);
        for (std::size_t t = static_cast<std::size_t>(tokens.begin); t < end;
             t += kRouterBlockTokens) {
            const std::size_t block = std::min(kRouterBlockTokens, end - t);
            timers.enter(thread, MOE_PHASE_ROUTER);
            if (candidates_.ready() && candidates_pay(weights, slice.count)) {
                candidates_.route(slice.x + t * d_model, block, lane.candidates, lane.route,
                                  slice.ids + t * top_k, slice.gates + t * top_k);
            } else {
                router_rows(mk_, packed_, slice.x + t * d_model, block, lane.z.data(), stride);
                for (std::size_t i = 0; i < block; ++i) {
                    route_row(mk_, table_, slice.x + (t + i) * d_model, lane.z.data() + i * stride,
                              lane.route, slice.ids + (t + i) * top_k,
                              slice.gates + (t + i) * top_k);
                }
            }
            timers.enter(thread, MOE_PHASE_QUANTIZE);
            for (std::size_t i = t; i < t + block; ++i) {
                const float *row = slice.x + i * d_model;
                x_scale_[i] = mk_.quantize(d_model, row, mk_.absmax(d_model, row), x_row(i));
            }
        }
    }

    void apply_experts(Lane &lane, int32_t thread, const Slice &slice) {
        const int32_t tasks = buckets_.task_count();
        for (;;) {
            const int32_t i = next_task_.fetch_add(1, std::memory_order_relaxed);
            if (i >= tasks) {
                return;
            }
            const Task &task = buckets_.task(i);
            ExpertRows rows;
            rows.count = static_cast<std::size_t>(task.count);
            for (int32_t r = 0; r < task.count; ++r) {
                const bool shared = task.expert == weights.num_experts;
                const int32_t pair =
                    shared ? slice.count * weights.top_k + task.begin + r
                           : buckets_.order()[task.begin + r];
                const int32_t token = shared ? task.begin + r : pair / weights.top_k;
                rows.x[r] = x_row(static_cast<std::size_t>(token));
                rows.x_scale[r] = x_scale_[static_cast<std::size_t>(token)];
                rows.out[r] = part(static_cast<std::size_t>(pair));
            }
            apply_expert(mk_, packed_, static_cast<std::size_t>(task.expert), rows, lane.expert,
                         timers, thread);
        }
    }

    void combine(Lane &lane, int32_t thread, Share tokens, const Slice &slice) {
        timers.enter(thread, MOE_PHASE_COMBINE);
        const std::size_t top_k = static_cast<std::size_t>(weights.top_k);
        const std::size_t shared = static_cast<std::size_t>(weights.has_shared);
        const std::size_t pairs = static_cast<std::size_t>(slice.count) * top_k;
        const std::size_t d_model = packed_.shape.d_model;
        for (std::size_t t = static_cast<std::size_t>(tokens.begin);
             t < static_cast<std::size_t>(tokens.end); ++t) {
            if (shared != 0) {
                lane.parts[0] = part(pairs + t);
                lane.gates[0] = 1.0f;
            }
            for (std::size_t k = 0; k < top_k; ++k) {
                lane.parts[shared + k] = part(t * top_k + k);
                lane.gates[shared + k] = slice.gates[t * top_k + k];
            }
            const float *x = slice.x + t * d_model;
            mk_.combine(d_model, weights.has_residual ? x : nullptr, lane.parts.data(),
                        lane.gates.data(), shared + top_k, slice.y + t * d_model);
        }
    }

    uint8_t *x_row(std::size_t token) { return x_rows_.data() + token * x_row_bytes_; }
    float *part(std::size_t pair) { return parts_.data() + pair * packed_.shape.d_padded; }

    const moe_microkernels &mk_;
    const std::unique_ptr<ThreadPool> pool_;
    const RouterTable table_;
    const PackedWeights packed_;
    const CandidateRouter candidates_;
    const int32_t slice_; // tokens computed at once
    const std::size_t x_row_bytes_;
    AlignedArray<uint8_t> x_rows_; // (slice, x_row_bytes)
    AlignedArray<float> x_scale_;  // (slice)
    AlignedArray<float> parts_;    // (slice * K routed, then slice shared; d_padded)
    Buckets buckets_;
    SingleToken single_;
    std::vector<Lane> lanes_; // one per thread
    alignas(64) std::atomic<int32_t> next_task_{0};
};

std::unique_ptr<Plan> make_packed_plan(const moe_weights &w, const moe_options &options) {
    auto pool = std::make_unique<ThreadPool>(options.threads, options.pin != 0);
    return std::make_unique<PackedPlan>(w, options, std::move(pool));
}

} // namespace
} // namespace packed
} // namespace moe

MOE_REGISTER_VARIANT("packed", moe::packed::make_packed_plan)
