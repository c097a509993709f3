#include "token_block.h"

#include <algorithm>

#include "router_rows.h"

namespace moe {
namespace packed {
namespace {

constexpr std::size_t kRouterBlockTokens = 96; // z and x of a block stay in L2

std::size_t tokens_of(int64_t count) { return static_cast<std::size_t>(count); }

} // namespace

Tokens Tokens::part(const moe_weights &w, Share share) const {
    return {x + share.begin * w.d_model,   y + share.begin * w.d_model,
            ids + share.begin * w.top_k,   gates + share.begin * w.top_k,
            static_cast<int32_t>(share.end - share.begin), by_candidates};
}

BlockBuffers::BlockBuffers(const Layer &layer, int32_t max_tokens)
    : parts_per_token_(static_cast<std::size_t>(layer.w.top_k + layer.w.has_shared)),
      x_row_bytes_(layer.mk.row_bytes(layer.packed.shape.d_model)),
      d_padded_(layer.packed.shape.d_padded), x_rows_(tokens_of(max_tokens) * x_row_bytes_),
      x_scale_(tokens_of(max_tokens)),
      parts_(tokens_of(max_tokens) * parts_per_token_ * d_padded_) {}

void BlockBuffers::zero(Share tokens) {
    const std::size_t begin = tokens_of(tokens.begin), end = tokens_of(tokens.end);
    x_rows_.zero(begin * x_row_bytes_, end * x_row_bytes_);
    x_scale_.zero(begin, end);
    parts_.zero(begin * parts_per_token_ * d_padded_, end * parts_per_token_ * d_padded_);
}

BlockView BlockBuffers::view(const Tokens &part, int64_t begin) {
    const std::size_t first = tokens_of(begin);
    return {part, x_rows_.data() + first * x_row_bytes_, x_scale_.data() + first,
            parts_.data() + first * parts_per_token_ * d_padded_};
}

BlockLane::BlockLane(const Layer &layer)
    : route(layer.w), candidates(layer.candidates.scratch(kRouterBlockTokens)),
      expert(layer.mk, layer.packed.shape),
      z(kRouterBlockTokens * layer.packed.router_panels() * layer.mk.router_nr),
      parts(static_cast<std::size_t>(layer.w.top_k + 1)), gates(parts.size()) {}

void BlockLane::zero() {
    route.zero();
    candidates.zero();
    expert.zero();
    z.zero();
    parts.zero();
    gates.zero();
}

int64_t BlockLane::bytes() const {
    return route.bytes() + candidates.bytes() + expert.bytes() + z.bytes() + parts.bytes() +
           gates.bytes();
}

void route_and_quantize(const Layer &layer, const BlockView &block, Share tokens, BlockLane &lane,
                        int32_t thread) {
    const moe_microkernels &mk = layer.mk;
    const Tokens &all = block.tokens;
    const std::size_t d_model = layer.packed.shape.d_model;
    const std::size_t row_bytes = mk.row_bytes(d_model);
    const std::size_t top_k = static_cast<std::size_t>(layer.w.top_k);
    const std::size_t stride = layer.packed.router_panels() * mk.router_nr;
    const std::size_t end = tokens_of(tokens.end);
    for (std::size_t t = tokens_of(tokens.begin); t < end; t += kRouterBlockTokens) {
        const std::size_t count = std::min(kRouterBlockTokens, end - t);
        layer.timers.enter(thread, MOE_PHASE_ROUTER);
        if (all.by_candidates) {
            layer.candidates.route(all.x + t * d_model, count, lane.candidates, lane.route,
                                   all.ids + t * top_k, all.gates + t * top_k);
        } else {
            router_rows(mk, layer.packed, all.x + t * d_model, count, lane.z.data(), stride);
            for (std::size_t i = 0; i < count; ++i) {
                route_row(mk, layer.table, all.x + (t + i) * d_model, lane.z.data() + i * stride,
                          lane.route, all.ids + (t + i) * top_k, all.gates + (t + i) * top_k);
            }
        }
        layer.timers.enter(thread, MOE_PHASE_QUANTIZE);
        for (std::size_t i = t; i < t + count; ++i) {
            const float *row = all.x + i * d_model;
            block.x_scale[i] = mk.quantize(d_model, row, mk.absmax(d_model, row),
                                           block.x_rows + i * row_bytes);
        }
    }
}

void apply_task(const Layer &layer, const BlockView &block, const Buckets &buckets,
                const Task &task, BlockLane &lane, int32_t thread) {
    const moe_weights &w = layer.w;
    const std::size_t row_bytes = layer.mk.row_bytes(layer.packed.shape.d_model);
    const bool shared = task.expert == w.num_experts;
    ExpertRows rows;
    rows.count = tokens_of(task.count);
    for (int32_t r = 0; r < task.count; ++r) {
        const int32_t pair = shared ? block.tokens.count * w.top_k + task.begin + r
                                    : buckets.order()[task.begin + r];
        const int32_t token = shared ? task.begin + r : pair / w.top_k;
        rows.x[r] = block.x_rows + tokens_of(token) * row_bytes;
        rows.x_scale[r] = block.x_scale[token];
        rows.out[r] = block.parts + tokens_of(pair) * layer.packed.shape.d_padded;
    }
    apply_expert(layer.mk, layer.packed, tokens_of(task.expert), rows, lane.expert, layer.timers,
                 thread);
}

void combine(const Layer &layer, const BlockView &block, Share tokens, Share channels,
             BlockLane &lane, int32_t thread) {
    layer.timers.enter(thread, MOE_PHASE_COMBINE);
    const std::size_t top_k = static_cast<std::size_t>(layer.w.top_k);
    const std::size_t shared = static_cast<std::size_t>(layer.w.has_shared);
    const std::size_t pairs = tokens_of(block.tokens.count) * top_k;
    const std::size_t d_model = layer.packed.shape.d_model;
    const std::size_t d_padded = layer.packed.shape.d_padded;
    const std::size_t first = static_cast<std::size_t>(channels.begin);
    const std::size_t count = static_cast<std::size_t>(channels.end) - first;
    const float *parts = block.parts + first;
    for (std::size_t t = tokens_of(tokens.begin); t < tokens_of(tokens.end); ++t) {
        if (shared != 0) {
            lane.parts[0] = parts + (pairs + t) * d_padded;
            lane.gates[0] = 1.0f;
        }
        for (std::size_t k = 0; k < top_k; ++k) {
            lane.parts[shared + k] = parts + (t * top_k + k) * d_padded;
            lane.gates[shared + k] = block.tokens.gates[t * top_k + k];
        }
        const std::size_t at = t * d_model + first;
        layer.mk.combine(count, layer.w.has_residual ? block.tokens.x + at : nullptr,
                         lane.parts.data(), lane.gates.data(), shared + top_k,
                         block.tokens.y + at);
    }
}

} // namespace packed
} // namespace moe
