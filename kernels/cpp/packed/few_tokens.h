// The forward of a few tokens by a team: an expert has about one row, so not the experts but the
// panels of every expert are shared out. A panel stays on one core, and all threads have equal work
// however the experts were chosen.
#pragma once

#include <vector>

#include "../thread_pool.h"
#include "token_block.h"

namespace moe {
namespace packed {

class FewTokens {
public:
    // The layer and the pool must outlive the object. max_tokens <= kBlockRows.
    FewTokens(const Layer &layer, ThreadPool &pool, int32_t max_tokens);
    ~FewTokens();

    // One thread's part; every thread of the pool calls it inside one region with the same block and
    // its own lane. Has barriers inside.
    void run(int32_t thread, int32_t team, const BlockView &block, BlockLane &block_lane);
    int64_t bytes() const;

private:
    struct Lane; // buffers of one thread

    void wait(int32_t thread, int32_t team);
    int32_t rows_of(const Buckets &buckets, const Task &task, const Tokens &tokens,
                    int32_t *pairs) const;
    void gate_up(Lane &lane, TileRows &tiles, int32_t thread, int32_t team,
                 const BlockView &block);
    void quantize(Share pairs, int32_t team);
    void down(Lane &lane, TileRows &tiles, int32_t thread, int32_t team, const BlockView &block);
    void combine_own(BlockLane &block_lane, int32_t thread, int32_t team, const BlockView &block);

    const Layer &layer_;
    ThreadPool &pool_;
    const std::size_t max_pairs_, h_row_bytes_;
    AlignedArray<float> h_;       // (pairs, h_padded)
    AlignedArray<float> largest_; // (threads, pairs padded to lines): max |h| of a thread's part
    AlignedArray<uint8_t> h_row_; // (pairs, h_row_bytes)
    AlignedArray<float> h_scale_; // (pairs)
    std::vector<Lane> lanes_;
};

} // namespace packed
} // namespace moe
