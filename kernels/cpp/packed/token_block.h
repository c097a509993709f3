// The steps of a forward of several tokens that are grouped by expert, for whoever shares them out:
// quantize and route (by token), apply experts (by task), combine (by token).
#pragma once

#include "../aligned_array.h"
#include "../share.h"
#include "buckets.h"
#include "expert_rows.h"
#include "layer.h"

namespace moe {
namespace packed {

// Tokens of one forward.
struct Tokens {
    const float *x; // (count, D)
    float *y;       // (count, D), written
    int32_t *ids;   // (count, K), written
    float *gates;   // (count, K), written
    int32_t count;
    bool by_candidates; // how they are routed: the same for all tokens of a forward

    // The tokens of a share of these.
    Tokens part(const moe_weights &w, Share share) const;
};

// Buffers for a block of tokens, or for a part of one; see BlockBuffers.
struct BlockView {
    Tokens tokens;
    uint8_t *x_rows; // (count, x_row_bytes)
    float *x_scale;  // (count)
    float *parts;    // (count * K routed, then count shared; d_padded): outputs of the experts
};

class BlockBuffers {
public:
    BlockBuffers(const Layer &layer, int32_t max_tokens);

    // The first touch by one thread: of those tokens that are its share when all are computed.
    void zero(Share tokens);
    // The whole buffers, or the part of them that belongs to a share of the tokens.
    BlockView view(const Tokens &tokens) { return view(tokens, 0); }
    BlockView view(const Tokens &part, int64_t begin);
    int64_t bytes() const { return x_rows_.bytes() + x_scale_.bytes() + parts_.bytes(); }

private:
    const std::size_t parts_per_token_, x_row_bytes_, d_padded_;
    AlignedArray<uint8_t> x_rows_;
    AlignedArray<float> x_scale_;
    AlignedArray<float> parts_;
};

// Buffers of one thread.
struct BlockLane {
    explicit BlockLane(const Layer &layer);
    void zero();
    int64_t bytes() const;

    RouteScratch route;
    CandidateScratch candidates;
    ExpertScratch expert;
    AlignedArray<float> z;             // (router block, E padded)
    AlignedArray<const float *> parts; // (K + 1)
    AlignedArray<float> gates;         // (K + 1)
};

// ids, gates, x_rows and x_scale of a share of the block's tokens.
void route_and_quantize(const Layer &layer, const BlockView &block, Share tokens, BlockLane &lane,
                        int32_t thread);

// The parts of one task.
void apply_task(const Layer &layer, const BlockView &block, const Buckets &buckets,
                const Task &task, BlockLane &lane, int32_t thread);

// y of a share of the block's tokens, channels [channels.begin, channels.end) of them.
void combine(const Layer &layer, const BlockView &block, Share tokens, Share channels,
             BlockLane &lane, int32_t thread);

} // namespace packed
} // namespace moe
