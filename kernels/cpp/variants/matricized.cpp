// matricized: routing and quantization of all tokens first, then one contiguous bucket of rows per
// expert, grouped products, and the sum per token in top-K order.
//
// An expert's weights are walked once per tile of kTileRows tokens instead of once per token. Rows
// are kept as int16, so that the compiler's multiply-add of int16 pairs serves the products. The
// fp32 order is the reference's: the router's lanes run over experts, each lane sums over d alone.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <vector>

#include "bucket.h"
#include "parallel.h"
#include "quantize.h"
#include "routing.h"
#include "step.h"
#include "swiglu.h"
#include "variant.h"

namespace moe {
namespace {

constexpr int32_t kTileRows = 16;    // tokens that share one walk over an expert's weights
constexpr int32_t kDotRows = 4;      // of them, tokens that share one load of a weight
constexpr int32_t kRouterLanes = 16; // experts that a router step computes side by side
constexpr int32_t kRouterRows = 4;   // tokens that share one load of router weights

constexpr int32_t round_up(int32_t value, int32_t step) {
    return (value + step - 1) / step * step;
}

// Router weights as (ceil(E / lanes), D, lanes), missing experts zero.
class LaneRouter {
public:
    explicit LaneRouter(const moe_weights &w)
        : d_model_(w.d_model), padded_experts_(round_up(w.num_experts, kRouterLanes)),
          packed_(static_cast<std::size_t>(padded_experts_) *
                  static_cast<std::size_t>(w.d_model)) {
        packed_.zero();
        for (int32_t e = 0; e < w.num_experts; ++e) {
            float *block = packed_.data() + block_start(e / kRouterLanes) + e % kRouterLanes;
            for (int64_t d = 0; d < d_model_; ++d) {
                block[d * kRouterLanes] = w.router[int64_t{e} * d_model_ + d];
            }
        }
    }

    int32_t padded_experts() const { return padded_experts_; }
    int64_t bytes() const { return packed_.bytes(); }

    // x: (kRouterRows) rows of D; z: (kRouterRows, padded_experts).
    MOE_STEP void dots(const float *const *x, float *z) const {
        for (int32_t block = 0; block < padded_experts_ / kRouterLanes; ++block) {
            const float *weights = packed_.data() + block_start(block);
            float sum[kRouterRows][kRouterLanes] = {};
            for (int32_t d = 0; d < d_model_; ++d) {
                for (int32_t r = 0; r < kRouterRows; ++r) {
                    const float value = x[r][d];
                    for (int32_t lane = 0; lane < kRouterLanes; ++lane) {
                        sum[r][lane] += weights[d * kRouterLanes + lane] * value;
                    }
                }
            }
            for (int32_t r = 0; r < kRouterRows; ++r) {
                for (int32_t lane = 0; lane < kRouterLanes; ++lane) {
                    z[r * padded_experts_ + block * kRouterLanes + lane] = sum[r][lane];
                }
            }
        }
    }

private:
    int64_t block_start(int32_t block) const {
        return int64_t{block} * d_model_ * kRouterLanes;
    }

    int32_t d_model_;
    int32_t padded_experts_;
    AlignedArray<float> packed_;
};

// acc[r * acc_stride] = sum over k of weights[k] * row r, for `rows` rows of `size` int16.
inline void dot_rows(const int8_t *weights, const int16_t *x, int32_t rows, int32_t size,
                     int32_t *acc, int64_t acc_stride) {
    int32_t r = 0;
    for (; r + kDotRows <= rows; r += kDotRows) {
        const int16_t *x0 = x + int64_t{r} * size;
        const int16_t *x1 = x0 + size;
        const int16_t *x2 = x1 + size;
        const int16_t *x3 = x2 + size;
        int32_t sum0 = 0;
        int32_t sum1 = 0;
        int32_t sum2 = 0;
        int32_t sum3 = 0;
        for (int32_t k = 0; k < size; ++k) {
            const int16_t weight = weights[k];
            sum0 += weight * x0[k];
            sum1 += weight * x1[k];
            sum2 += weight * x2[k];
            sum3 += weight * x3[k];
        }
        acc[r * acc_stride] = sum0;
        acc[(r + 1) * acc_stride] = sum1;
        acc[(r + 2) * acc_stride] = sum2;
        acc[(r + 3) * acc_stride] = sum3;
    }
    for (; r < rows; ++r) {
        const int16_t *row = x + int64_t{r} * size;
        int32_t sum = 0;
        for (int32_t k = 0; k < size; ++k) {
            const int16_t weight = weights[k];
            sum += weight * row[k];
        }
        acc[r * acc_stride] = sum;
    }
}

// acc: (rows, outputs) int32 = x (rows, size) times the transpose of matrix (outputs, size).
MOE_STEP void grouped_product(const int8_t *matrix, const int16_t *x, int32_t rows,
                              int32_t outputs, int32_t size, int32_t *acc) {
    for (int32_t out = 0; out < outputs; ++out) {
        dot_rows(matrix + int64_t{out} * size, x, rows, size, acc + out, outputs);
    }
}

// Buffers of one thread.
struct TileScratch {
    TileScratch(const moe_weights &w, int32_t padded_experts)
        : router(w), z(static_cast<std::size_t>(kRouterRows * padded_experts)),
          acc_gate(static_cast<std::size_t>(kTileRows) * static_cast<std::size_t>(w.d_ff)),
          acc_up(acc_gate.size()), h(static_cast<std::size_t>(w.d_ff)), h_q(acc_gate.size()),
          h_scale(kTileRows),
          acc_down(static_cast<std::size_t>(kTileRows) * static_cast<std::size_t>(w.d_model)) {}

    void zero() {
        router.zero();
        z.zero();
        acc_gate.zero();
        acc_up.zero();
        h.zero();
        h_q.zero();
        h_scale.zero();
        acc_down.zero();
    }
    int64_t bytes() const {
        return router.bytes() + z.bytes() + acc_gate.bytes() + acc_up.bytes() + h.bytes() +
               h_q.bytes() + h_scale.bytes() + acc_down.bytes();
    }

    RouterScratch router;
    AlignedArray<float> z;          // (kRouterRows, padded experts)
    AlignedArray<int32_t> acc_gate; // (kTileRows, H)
    AlignedArray<int32_t> acc_up;   // (kTileRows, H)
    AlignedArray<float> h;          // (H)
    AlignedArray<int16_t> h_q;      // (kTileRows, H)
    AlignedArray<float> h_scale;    // (kTileRows)
    AlignedArray<int32_t> acc_down; // (kTileRows, D)
};

class MatricizedPlan final : public Plan {
public:
    MatricizedPlan(const moe_weights &w, const moe_options &options)
        : Plan(w, options, available_threads(options.threads)), table_(make_router_table(w)),
          router_(w), team_(threads, pin), buckets_(w.num_experts, w.top_k, max_tokens, kTileRows),
          x_q_(row_count(1) * width()), x_scale_(row_count(1)),
          bucket_x_q_(row_count(w.top_k) * width()),
          bucket_scale_(row_count(w.top_k)), routed_out_(bucket_x_q_.size()),
          shared_out_(w.has_shared ? x_q_.size() : 0) {
        for (int32_t i = 0; i < threads; ++i) {
            scratch_.emplace_back(w, router_.padded_experts());
        }
        run_team(threads, [&](int32_t thread, int32_t team) { touch(thread, team); });
    }

    void forward(const float *x, float *y, int64_t n) noexcept override {
        next_tile_.store(0, std::memory_order_relaxed);
        run_team(threads, [&](int32_t thread, int32_t team) {
            const Share tokens = static_share(n, thread, team);
            route(x, tokens, thread);
            quantize(x, tokens, thread);
            timers.leave(thread);
            team_barrier();
            if (thread == 0) {
                timers.enter(thread, MOE_PHASE_BUCKET);
                buckets_.group(ids.data(), n, weights.has_shared != 0);
                timers.leave(thread);
            }
            team_barrier();
            gather(tokens, thread);
            timers.leave(thread);
            team_barrier();
            run_tiles(thread);
            timers.leave(thread);
            team_barrier();
            combine(x, y, tokens, thread);
            timers.leave(thread);
        });
    }

    void describe(moe_info *info) const override {
        info->mr = kDotRows;
        info->nr = 1;
        info->kr = 1;
        std::snprintf(info->microkernel, sizeof info->microkernel, "s16xs8_dot_%dx1", kDotRows);
        info->weight_bytes = unpacked_weight_bytes(weights) + router_.bytes();
        info->workspace_bytes = scratch_.front().bytes() * threads + buckets_.bytes() +
                                x_q_.bytes() + x_scale_.bytes() + bucket_x_q_.bytes() +
                                bucket_scale_.bytes() + routed_out_.bytes() + shared_out_.bytes() +
                                ids.bytes() + gates.bytes();
    }

private:
    std::size_t row_count(int32_t per_token) const {
        return static_cast<std::size_t>(max_tokens) * static_cast<std::size_t>(per_token);
    }
    std::size_t width() const { return static_cast<std::size_t>(weights.d_model); }

    // First stores of each array by the thread that will most likely use that part.
    void touch(int32_t thread, int32_t team) {
        scratch_[static_cast<std::size_t>(thread)].zero();
        const auto zero_share = [thread, team](auto &array) {
            const Share share = static_share(static_cast<int64_t>(array.size()), thread, team);
            array.zero(static_cast<std::size_t>(share.begin), static_cast<std::size_t>(share.end));
        };
        zero_share(x_q_);
        zero_share(x_scale_);
        zero_share(bucket_x_q_);
        zero_share(bucket_scale_);
        zero_share(routed_out_);
        zero_share(shared_out_);
    }

    MOE_STEP void route(const float *x, Share tokens, int32_t thread) {
        timers.enter(thread, MOE_PHASE_ROUTER);
        TileScratch &scratch = scratch_[static_cast<std::size_t>(thread)];
        for (int64_t first = tokens.begin; first < tokens.end; first += kRouterRows) {
            const float *rows[kRouterRows];
            for (int32_t r = 0; r < kRouterRows; ++r) { // the last rows repeat at the end
                const int64_t t = std::min<int64_t>(first + r, tokens.end - 1);
                rows[r] = x + t * weights.d_model;
            }
            router_.dots(rows, scratch.z.data());
            for (int64_t t = first; t < std::min<int64_t>(first + kRouterRows, tokens.end); ++t) {
                route_from(table_, x + t * weights.d_model,
                           scratch.z.data() + (t - first) * router_.padded_experts(),
                           scratch.router, ids.data() + t * weights.top_k,
                           gates.data() + t * weights.top_k);
            }
        }
    }

    MOE_STEP void quantize(const float *x, Share tokens, int32_t thread) {
        timers.enter(thread, MOE_PHASE_QUANTIZE);
        for (int64_t t = tokens.begin; t < tokens.end; ++t) {
            x_scale_[static_cast<std::size_t>(t)] =
                quantize_row(x + t * weights.d_model, weights.d_model,
                             x_q_.data() + t * weights.d_model);
        }
    }

    MOE_STEP void gather(Share tokens, int32_t thread) {
        timers.enter(thread, MOE_PHASE_BUCKET);
        for (int64_t t = tokens.begin; t < tokens.end; ++t) {
            for (int32_t k = 0; k < weights.top_k; ++k) {
                const int64_t row = buckets_.position(t, k);
                std::copy_n(x_q_.data() + t * weights.d_model, weights.d_model,
                            bucket_x_q_.data() + row * weights.d_model);
                bucket_scale_[static_cast<std::size_t>(row)] =
                    x_scale_[static_cast<std::size_t>(t)];
            }
        }
    }

    void run_tiles(int32_t thread) {
        for (;;) {
            const int64_t i = next_tile_.fetch_add(1, std::memory_order_relaxed);
            if (i >= buckets_.tile_count()) {
                return;
            }
            const BucketTile &tile = buckets_.tile(i);
            const bool shared = tile.expert == weights.num_experts;
            const int64_t offset = tile.row * weights.d_model;
            run_tile(tile, (shared ? x_q_ : bucket_x_q_).data() + offset,
                     (shared ? x_scale_ : bucket_scale_).data() + tile.row,
                     (shared ? shared_out_ : routed_out_).data() + offset, thread);
        }
    }

    // One expert on a tile's rows. x: (rows, D) int16; x_scale: (rows); out: (rows, D) f32.
    void run_tile(const BucketTile &tile, const int16_t *x, const float *x_scale, float *out,
                  int32_t thread) {
        const moe_weights &w = weights;
        TileScratch &scratch = scratch_[static_cast<std::size_t>(thread)];
        const int64_t matrix = int64_t{tile.expert} * w.d_model * w.d_ff;
        timers.enter(thread, MOE_PHASE_GATE_UP);
        grouped_product(w.gate + matrix, x, tile.rows, w.d_ff, w.d_model, scratch.acc_gate.data());
        grouped_product(w.up + matrix, x, tile.rows, w.d_ff, w.d_model, scratch.acc_up.data());
        timers.enter(thread, MOE_PHASE_ACTIVATION);
        for (int64_t r = 0; r < tile.rows; ++r) {
            const int64_t hidden = int64_t{tile.expert} * w.d_ff;
            swiglu_row(scratch.acc_gate.data() + r * w.d_ff, scratch.acc_up.data() + r * w.d_ff,
                       w.gate_scale + hidden, w.up_scale + hidden, x_scale[r], w.d_ff,
                       scratch.h.data());
            scratch.h_scale[static_cast<std::size_t>(r)] =
                quantize_row(scratch.h.data(), w.d_ff, scratch.h_q.data() + r * w.d_ff);
        }
        timers.enter(thread, MOE_PHASE_DOWN);
        grouped_product(w.down + matrix, scratch.h_q.data(), tile.rows, w.d_model, w.d_ff,
                        scratch.acc_down.data());
        const float *down_scale = w.down_scale + int64_t{tile.expert} * w.d_model;
        for (int64_t r = 0; r < tile.rows; ++r) {
            const int32_t *acc = scratch.acc_down.data() + r * w.d_model;
            const float h_scale = scratch.h_scale[static_cast<std::size_t>(r)];
            for (int64_t d = 0; d < w.d_model; ++d) {
                out[r * w.d_model + d] = static_cast<float>(acc[d]) * (h_scale * down_scale[d]);
            }
        }
    }

    MOE_STEP void combine(const float *x, float *y, Share tokens, int32_t thread) {
        timers.enter(thread, MOE_PHASE_COMBINE);
        const int64_t d_model = weights.d_model;
        for (int64_t t = tokens.begin; t < tokens.end; ++t) {
            float *row = y + t * d_model;
            for (int64_t d = 0; d < d_model; ++d) {
                row[d] = weights.has_residual ? x[t * d_model + d] : 0.0f;
            }
            if (weights.has_shared) {
                const float *out = shared_out_.data() + t * d_model;
                for (int64_t d = 0; d < d_model; ++d) {
                    row[d] += out[d];
                }
            }
            for (int32_t k = 0; k < weights.top_k; ++k) {
                const float gate = gates[static_cast<std::size_t>(t * weights.top_k + k)];
                const float *out = routed_out_.data() + buckets_.position(t, k) * d_model;
                for (int64_t d = 0; d < d_model; ++d) {
                    row[d] += gate * out[d];
                }
            }
        }
    }

    const RouterTable table_;
    const LaneRouter router_;
    PinnedTeam team_;
    Buckets buckets_;
    AlignedArray<int16_t> x_q_;        // (max_tokens, D)
    AlignedArray<float> x_scale_;      // (max_tokens)
    AlignedArray<int16_t> bucket_x_q_; // (max_tokens * K, D), rows in bucket order
    AlignedArray<float> bucket_scale_; // (max_tokens * K)
    AlignedArray<float> routed_out_;   // (max_tokens * K, D), rows in bucket order
    AlignedArray<float> shared_out_;   // (max_tokens, D)
    std::vector<TileScratch> scratch_; // one per thread
    alignas(kAlignment) std::atomic<int64_t> next_tile_{0};
};

std::unique_ptr<Plan> make_matricized_plan(const moe_weights &w, const moe_options &options) {
    return std::make_unique<MatricizedPlan>(w, options);
}

} // namespace
} // namespace moe

MOE_REGISTER_VARIANT("matricized", moe::make_matricized_plan)
