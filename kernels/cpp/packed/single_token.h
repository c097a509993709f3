// The forward of one token: experts' panels shared out among threads, one barrier.
#pragma once

#include <vector>

#include "../aligned_array.h"
#include "../thread_pool.h"
#include "layer.h"

namespace moe {
namespace packed {

// How threads share out the dual panels of the experts.
enum class PanelShare {
    kAcrossExperts, // equal parts of all panels of all experts in a row
    kSamePanels     // the same panels of every expert: a panel stays on one core in all forwards
};

class SingleToken {
public:
    // The layer and the pool must outlive the object; the timers have a lane per thread.
    SingleToken(const Layer &layer, ThreadPool &pool, PanelShare panel_share);
    ~SingleToken();

    // One thread's part; every thread of the pool calls it inside one region with the same
    // x, y: (D) f32 and ids, gates: (K), written. Has barriers inside.
    void run(int32_t thread, int32_t team, const float *x, float *y, int32_t *ids, float *gates);
    int64_t bytes() const;

private:
    struct Lane; // buffers of one thread

    void route(Lane &lane, int32_t thread, int32_t team, const float *x);
    void gate_up(Lane &lane, int32_t thread, int32_t team);
    void gate_up_of(Lane &lane, int32_t thread, std::size_t slot, std::size_t first,
                    std::size_t last);
    void multiply_row(const moe_microkernels &mk, const void *row, const Panels &panels,
                      int32_t *acc) const;
    void activate(Lane &lane, int32_t team);
    void down(Lane &lane, int32_t thread, int32_t team, const float *x, float *y);
    std::size_t expert_at(const Lane &lane, std::size_t slot) const;

    const moe_microkernels &mk_;
    const moe_weights &w_;
    const PackedWeights &packed_;
    const RouterTable &table_;
    ThreadPool &pool_;
    PhaseTimers &timers_;
    const PanelShare panel_share_;
    const bool near_; // all experts are small enough for L2
    const std::size_t slots_; // experts applied to the token: the shared one first, then K
    const std::size_t largest_stride_;
    AlignedArray<float> z_;       // (router_panels * router_nr), for a router shared out
    AlignedArray<float> h_;       // (slots, h_padded)
    AlignedArray<float> largest_; // (threads, largest_stride): max |h| of a thread's part
    std::vector<Lane> lanes_;
};

} // namespace packed
} // namespace moe
