#include "few_tokens.h"

#include <algorithm>

namespace moe {
namespace packed {
namespace {

std::size_t line_of_floats(std::size_t n) { return (n + 15) / 16 * 16; }

std::size_t index(int64_t i) { return static_cast<std::size_t>(i); }

} // namespace

struct FewTokens::Lane {
    Lane(const Layer &layer, std::size_t tokens)
        : buckets(layer.w, static_cast<int32_t>(tokens)),
          acc(tokens * 2 * layer.packed.shape.h_padded), tile(tokens * kDownPanels * layer.mk.nr) {
        acc.zero();
        tile.zero();
    }
    int64_t bytes() const { return buckets.bytes() + acc.bytes() + tile.bytes(); }

    Buckets buckets;           // the same in every lane: cheaper than one more barrier
    AlignedArray<int32_t> acc; // (tokens, own gate and up channels)
    AlignedArray<int32_t> tile;
};

FewTokens::FewTokens(const Layer &layer, ThreadPool &pool, int32_t max_tokens)
    : layer_(layer), pool_(pool),
      max_pairs_(index(max_tokens) * index(layer.w.top_k + layer.w.has_shared)),
      h_row_bytes_(layer.mk.row_bytes(layer.packed.shape.d_ff)),
      h_(max_pairs_ * layer.packed.shape.h_padded),
      largest_(index(pool.threads()) * line_of_floats(max_pairs_)),
      h_row_(max_pairs_ * h_row_bytes_), h_scale_(max_pairs_) {
    h_.zero();
    largest_.zero();
    h_row_.zero();
    h_scale_.zero();
    lanes_.reserve(index(pool.threads()));
    for (int32_t i = 0; i < pool.threads(); ++i) {
        lanes_.emplace_back(layer, index(max_tokens));
    }
}

FewTokens::~FewTokens() = default;

int64_t FewTokens::bytes() const {
    return h_.bytes() + largest_.bytes() + h_row_.bytes() + h_scale_.bytes() +
           lanes_.front().bytes() * static_cast<int64_t>(lanes_.size());
}

void FewTokens::wait(int32_t thread, int32_t team) {
    if (team > 1) {
        layer_.timers.leave(thread);
        pool_.barrier(thread);
    }
}

void FewTokens::run(int32_t thread, int32_t team, const BlockView &block, BlockLane &block_lane) {
    const Tokens &tokens = block.tokens;
    Lane &lane = lanes_[index(thread)];
    route_and_quantize(layer_, block, static_share(tokens.count, thread, team), block_lane,
                       thread);
    wait(thread, team);
    layer_.timers.enter(thread, MOE_PHASE_BUCKET);
    lane.buckets.fill(tokens.ids, tokens.count, tokens.count);
    gate_up(lane, block_lane.expert.tiles, thread, team, block);
    wait(thread, team);
    layer_.timers.enter(thread, MOE_PHASE_ACTIVATION);
    const int64_t pairs = int64_t{tokens.count} * (layer_.w.top_k + layer_.w.has_shared);
    quantize(static_share(pairs, thread, team), team);
    wait(thread, team);
    down(lane, block_lane.expert.tiles, thread, team, block);
    block_lane.expert.tiles.release(layer_.mk);
    combine_own(block_lane, thread, team, block);
    layer_.timers.leave(thread);
}

// The pairs (t * K + k, or n * K + t of the shared expert) that a task's rows are; their number.
int32_t FewTokens::rows_of(const Buckets &buckets, const Task &task, const Tokens &tokens,
                           int32_t *pairs) const {
    for (int32_t r = 0; r < task.count; ++r) {
        pairs[r] = task.expert == layer_.w.num_experts
                       ? tokens.count * layer_.w.top_k + task.begin + r
                       : buckets.order()[task.begin + r];
    }
    return task.count;
}

void FewTokens::gate_up(Lane &lane, TileRows &tiles, int32_t thread, int32_t team,
                        const BlockView &block) {
    const moe_microkernels &mk = layer_.mk;
    const PackedWeights &packed = layer_.packed;
    const ExpertShape &shape = packed.shape;
    const Share share = static_share(static_cast<int64_t>(shape.gate_up_panels), thread, team);
    const std::size_t first = index(share.begin), last = index(share.end);
    const std::size_t stride = (last - first) * mk.nr;
    const std::size_t row_bytes = mk.row_bytes(shape.d_model);
    const int32_t routed = block.tokens.count * layer_.w.top_k;
    float *largest = largest_.data() + index(thread) * line_of_floats(max_pairs_);
    std::fill(largest, largest + max_pairs_, 0.0f);
    if (first == last) {
        return;
    }
    for (int32_t i = 0; i < lane.buckets.task_count(); ++i) {
        const Task &task = lane.buckets.task(i);
        const std::size_t expert = index(task.expert);
        int32_t pairs[kBlockRows];
        const void *x[kBlockRows];
        float x_scale[kBlockRows];
        const std::size_t count = index(rows_of(lane.buckets, task, block.tokens, pairs));
        for (std::size_t r = 0; r < count; ++r) {
            const int32_t token =
                pairs[r] < routed ? pairs[r] / layer_.w.top_k : pairs[r] - routed;
            x[r] = block.x_rows + index(token) * row_bytes;
            x_scale[r] = block.x_scale[token];
        }
        layer_.timers.enter(thread, MOE_PHASE_GATE_UP);
        const void *const *even = tiles.prepare(mk, shape.d_model, x, count);
        const Panels gate_up = packed.gate_up(expert).part(first, last - first);
        const std::size_t step = panels_at_once(mk, gate_up.bytes_each);
        for (std::size_t p = 0; p < gate_up.count; p += step) {
            const Panels panels = gate_up.part(p, step);
            for (std::size_t m = 0; m < count; m += mk.mr) {
                multiply(mk, even + m, std::min(mk.mr, count - m), panels,
                         lane.acc.data() + m * stride + p * mk.nr, stride);
            }
        }
        layer_.timers.enter(thread, MOE_PHASE_ACTIVATION);
        for (std::size_t r = 0; r < count; ++r) {
            largest[pairs[r]] = mk.swiglu(
                last - first, lane.acc.data() + r * stride,
                packed.gate_up_scales(expert) + first * mk.nr, x_scale[r],
                h_.data() + index(pairs[r]) * shape.h_padded + first * (mk.nr / 2));
        }
    }
}

void FewTokens::quantize(Share pairs, int32_t team) {
    const ExpertShape &shape = layer_.packed.shape;
    for (std::size_t i = index(pairs.begin); i < index(pairs.end); ++i) {
        float largest = 0.0f;
        for (int32_t t = 0; t < team; ++t) {
            largest = std::max(largest, largest_[index(t) * line_of_floats(max_pairs_) + i]);
        }
        h_scale_[i] = layer_.mk.quantize(shape.d_ff, h_.data() + i * shape.h_padded, largest,
                                         h_row_.data() + i * h_row_bytes_);
    }
}

// A thread's part of the output channels, of every expert, so that it can also combine them.
void FewTokens::down(Lane &lane, TileRows &tiles, int32_t thread, int32_t team,
                     const BlockView &block) {
    const moe_microkernels &mk = layer_.mk;
    const PackedWeights &packed = layer_.packed;
    const ExpertShape &shape = packed.shape;
    const Share share = static_share(static_cast<int64_t>(shape.down_panels), thread, team);
    layer_.timers.enter(thread, MOE_PHASE_DOWN);
    const moe_microkernels &products = *moe_down_kernels(&mk);
    for (int32_t i = 0; i < lane.buckets.task_count(); ++i) {
        const Task &task = lane.buckets.task(i);
        const std::size_t expert = index(task.expert);
        int32_t pairs[kBlockRows];
        const void *h[kBlockRows];
        float h_scale[kBlockRows];
        float *out[kBlockRows];
        const std::size_t count = index(rows_of(lane.buckets, task, block.tokens, pairs));
        for (std::size_t r = 0; r < count; ++r) {
            h[r] = h_row_.data() + index(pairs[r]) * h_row_bytes_;
            h_scale[r] = h_scale_[index(pairs[r])];
            out[r] = block.parts + index(pairs[r]) * shape.d_padded;
        }
        const void *const *even = tiles.prepare(mk, shape.d_ff, h, count);
        const Panels down = packed.down(expert).part(0, index(share.end));
        const std::size_t step = std::min(kDownPanels, panels_at_once(products, down.bytes_each));
        for (std::size_t p = index(share.begin); p < down.count; p += step) {
            const Panels panels = down.part(p, step);
            const std::size_t channels = panels.count * mk.nr;
            for (std::size_t m = 0; m < count; m += mk.mr) {
                const std::size_t mr = std::min(mk.mr, count - m);
                multiply(products, even + m, mr, panels, lane.tile.data(), channels);
                mk.dequantize(mr, channels, lane.tile.data(), channels,
                              packed.down_scales(expert), h_scale + m, p * mk.nr, out + m);
            }
        }
    }
}

void FewTokens::combine_own(BlockLane &block_lane, int32_t thread, int32_t team,
                            const BlockView &block) {
    const int64_t nr = static_cast<int64_t>(layer_.mk.nr);
    const ExpertShape &shape = layer_.packed.shape;
    const Share panels = static_share(static_cast<int64_t>(shape.down_panels), thread, team);
    const Share channels{panels.begin * nr, std::min<int64_t>(panels.end * nr, layer_.w.d_model)};
    if (channels.begin < channels.end) {
        combine(layer_, block, {0, block.tokens.count}, channels, block_lane, thread);
    }
}

} // namespace packed
} // namespace moe
