// Which thread applies which tasks: one owner per routed expert; of the shared expert every thread has
// the rows of the tokens that it will combine.
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
    // forward only as far as the choice of experts does. The shared expert's tasks are cut as the
    // tokens are. By one thread, before take().
    void share_out(const Buckets &buckets, const moe_weights &w, int32_t team);

    // The next task of a thread: of its own experts, of its own tokens, then of whoever still has
    // some; -1 when none is left.
    int32_t take(int32_t thread);

private:
    struct alignas(128) Queue {
        std::atomic<int32_t> next{0};
        int32_t end = 0;
    };

    static int32_t take_from(Queue &queue);

    int32_t team_ = 1;
    std::unique_ptr<Queue[]> queues_; // of routed experts, one per thread; of the shared one, again
};

} // namespace packed
} // namespace moe
