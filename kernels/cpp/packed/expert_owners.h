// Which thread applies which tasks: one owner per expert, the shared expert for whoever is free.
#pragma once

#include <atomic>
#include <memory>

#include "buckets.h"

namespace moe {
namespace packed {

class ExpertOwners {
public:
    explicit ExpertOwners(int32_t threads);

    // Cuts the routed experts' tasks into one contiguous part per thread, of about equal rows, at
    // experts' ends; every expert's chunks stay together, and its owner changes from forward to
    // forward only as far as the choice of experts does. By one thread, before take().
    void share_out(const Buckets &buckets, const moe_weights &w, int32_t team);

    // The next task of a thread: of its own experts, then of the shared one, then of whoever still
    // has some; -1 when none is left.
    int32_t take(int32_t thread);

private:
    struct alignas(128) Queue {
        std::atomic<int32_t> next{0};
        int32_t end = 0;
    };

    static int32_t take_from(Queue &queue);

    int32_t team_ = 1;
    std::unique_ptr<Queue[]> queues_; // one per thread, then that of the shared expert
};

} // namespace packed
} // namespace moe
