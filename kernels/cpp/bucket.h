// Grouping tokens by expert: counts, prefix sums, one contiguous bucket of rows per expert.
#pragma once

#include <algorithm>
#include <cstdint>

#include "aligned_array.h"

namespace moe {

// Rows [row, row + rows) of one expert's bucket: the unit of work of a thread.
struct BucketTile {
    int32_t expert;
    int32_t rows;
    int64_t row;
};

// The grouping of one forward. Rows of expert e are offsets[e]..offsets[e + 1], tokens ascending.
class Buckets {
public:
    Buckets(int32_t num_experts, int32_t top_k, int32_t max_tokens, int32_t tile_rows)
        : num_experts_(num_experts), top_k_(top_k), tile_rows_(tile_rows),
          offsets_(static_cast<std::size_t>(num_experts) + 1),
          cursor_(static_cast<std::size_t>(num_experts)),
          position_(static_cast<std::size_t>(max_tokens) * static_cast<std::size_t>(top_k)),
          tiles_(position_.size() / static_cast<std::size_t>(tile_rows) + cursor_.size() +
                 static_cast<std::size_t>(max_tokens / tile_rows) + 1) {}

    // ids: (n, K). with_shared adds tiles over all n tokens for expert E, first, as the longest.
    void group(const int32_t *ids, int64_t n, bool with_shared) {
        std::fill_n(cursor_.data(), num_experts_, 0);
        for (int64_t i = 0; i < n * top_k_; ++i) {
            ++cursor_[static_cast<std::size_t>(ids[i])];
        }
        tile_count_ = 0;
        if (with_shared) {
            cut(num_experts_, 0, n);
        }
        int64_t next = 0;
        for (int32_t e = 0; e < num_experts_; ++e) {
            const int64_t count = cursor_[static_cast<std::size_t>(e)];
            offsets_[static_cast<std::size_t>(e)] = next;
            cut(e, next, count);
            cursor_[static_cast<std::size_t>(e)] = next;
            next += count;
        }
        offsets_[static_cast<std::size_t>(num_experts_)] = next;
        for (int64_t i = 0; i < n * top_k_; ++i) {
            position_[static_cast<std::size_t>(i)] = cursor_[static_cast<std::size_t>(ids[i])]++;
        }
    }

    // Row of the k-th choice of token t.
    int64_t position(int64_t t, int32_t k) const {
        return position_[static_cast<std::size_t>(t * top_k_ + k)];
    }
    int64_t tile_count() const { return tile_count_; }
    const BucketTile &tile(int64_t i) const { return tiles_[static_cast<std::size_t>(i)]; }
    int64_t bytes() const {
        return offsets_.bytes() + cursor_.bytes() + position_.bytes() + tiles_.bytes();
    }

private:
    void cut(int32_t expert, int64_t first, int64_t count) {
        for (int64_t row = 0; row < count; row += tile_rows_) {
            const int64_t rows = std::min<int64_t>(tile_rows_, count - row);
            tiles_[static_cast<std::size_t>(tile_count_++)] = {
                expert, static_cast<int32_t>(rows), first + row};
        }
    }

    int32_t num_experts_;
    int32_t top_k_;
    int32_t tile_rows_;
    int64_t tile_count_ = 0;
    AlignedArray<int64_t> offsets_;  // (E + 1)
    AlignedArray<int64_t> cursor_;   // (E)
    AlignedArray<int64_t> position_; // (max_tokens, K)
    AlignedArray<BucketTile> tiles_;
};

} // namespace moe
