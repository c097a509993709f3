// One rank's engine: packed experts, the team of threads and each thread's block of intermediates.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "../aligned_array.h"
#include "../packed/microkernels.h"
#include "../packed/tile_rows.h"
#include "../thread_pool.h"
#include "experts.h"
#include "moe_ep.h"

namespace moe {
namespace ep {

constexpr std::size_t kMaxBlockRows = MOE_MAX_MR;

// Slots of one source and where their rows go back to.
struct Run {
    const uint8_t *slots;
    uint8_t *rows;
    std::size_t count;
};

// A thread's intermediates of a block of rows of one expert: made, used and overwritten in its caches.
struct Scratch {
    Scratch(const moe_microkernels &mk, const Experts &experts, std::size_t rows);
    void zero();
    int64_t bytes() const;

    uint8_t *x_row(std::size_t i) { return x.data() + i * x_row_bytes; }
    uint8_t *q2_row(std::size_t i) { return q2.data() + i * q2_row_bytes; }

    const std::size_t x_row_bytes, q2_row_bytes, z_stride;
    AlignedArray<uint8_t> x;    // (rows, x_row_bytes): q in the path's form
    AlignedArray<uint8_t> q2;   // (rows, q2_row_bytes)
    AlignedArray<int32_t> acc;  // (mr, 2 nr): a tile of gate and of up
    AlignedArray<float> z;      // (rows, z_stride)
    AlignedArray<float> values; // (largest of h, m): a row on its way from or to int8
    AlignedArray<int8_t> bytes_row; // as values
    std::vector<Run> runs;      // of the expert at hand
    std::vector<float> x_scale, s2;     // (rows)
    std::vector<const void *> operands; // (rows)
    std::vector<uint8_t *> out;         // (rows)
    packed::TileRows tiles;
};

// Buffers of one call that all threads of a rank look at; they grow with the largest call.
struct CallState {
    std::vector<int32_t> counts;    // (E) rows by expert
    std::vector<int32_t> received;  // (L, P) rows by local expert and source
    std::vector<int64_t> groups;    // (L) cumulative
    std::vector<uint8_t *> targets; // (R) where a row goes back to
    std::unique_ptr<std::atomic<int32_t>[]> remaining; // (E) rows not yet placed
    std::size_t remaining_size = 0;

    // All that later steps need, so that none of them allocates.
    void grow(std::size_t experts, std::size_t local, std::size_t ranks);
};

} // namespace ep
} // namespace moe

struct moe_ep_engine {
    explicit moe_ep_engine(const moe_ep_setup &setup);

    const moe_microkernels &mk;
    const moe::TickRate rate;
    moe::ThreadPool pool;
    const moe::ep::Experts experts;
    const std::size_t block_rows;
    std::vector<moe::ep::Scratch> scratch; // (threads)
    moe::ep::CallState state;
    std::atomic<bool> busy{false};
};

namespace moe {
namespace ep {

// Holds the engine for one call; false where another call holds it.
class Hold {
public:
    explicit Hold(moe_ep_engine &engine)
        : engine_(engine), held_(!engine.busy.exchange(true, std::memory_order_acquire)) {}
    ~Hold() {
        if (held_) {
            engine_.busy.store(false, std::memory_order_release);
        }
    }
    Hold(const Hold &) = delete;
    Hold &operator=(const Hold &) = delete;
    explicit operator bool() const { return held_; }

private:
    moe_ep_engine &engine_;
    const bool held_;
};

} // namespace ep
} // namespace moe
