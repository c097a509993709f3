// What a path with tile registers wants before its products (microkernels.h): rows at equal distances
// and the thread's tiles set for their number. On other paths nothing happens.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "../aligned_array.h"
#include "microkernels.h"

namespace moe {
namespace packed {

// Of one thread.
class TileRows {
public:
    // most_values: of a row.
    TileRows(const moe_microkernels &mk, std::size_t most_values)
        : copies_(mk.tile_rows == 0 ? 0 : MOE_MAX_MR * mk.row_bytes(most_values)) {}

    // rows: `count` <= mk.mr of k values each. Returns them as gemm[count - 1] wants them, valid until
    // the next call. Gathering costs a copy of each row per expert, nothing beside its products.
    const void *const *prepare(const moe_microkernels &mk, std::size_t k, const void *const *rows,
                               std::size_t count) {
        if (mk.tile_rows == 0 || count < mk.tile_rows) {
            return rows;
        }
        if (configured_ != count) {
            mk.configure_tiles(count);
            configured_ = count;
        }
        const std::size_t row_bytes = mk.row_bytes(k);
        if (are_even(rows, count, row_bytes)) {
            return rows;
        }
        for (std::size_t m = 0; m < count; ++m) {
            uint8_t *copy = copies_.data() + m * row_bytes;
            std::memcpy(copy, rows[m], row_bytes);
            even_[m] = copy;
        }
        return even_;
    }

    // At the end of the thread's part of a forward: others may set its tiles then, and the system no
    // longer saves them.
    void release(const moe_microkernels &mk) {
        if (configured_ != 0) {
            mk.release_tiles();
            configured_ = 0;
        }
    }

    void zero() { copies_.zero(); }
    int64_t bytes() const { return copies_.bytes(); }

private:
    static bool are_even(const void *const *rows, std::size_t count, std::size_t row_bytes) {
        const uint8_t *first = static_cast<const uint8_t *>(rows[0]);
        for (std::size_t m = 1; m < count; ++m) {
            if (rows[m] != first + m * row_bytes) {
                return false;
            }
        }
        return true;
    }

    AlignedArray<uint8_t> copies_; // (MOE_MAX_MR, row bytes)
    const void *even_[MOE_MAX_MR] = {};
    std::size_t configured_ = 0; // rows for which the tiles are set, 0: not set
};

} // namespace packed
} // namespace moe
