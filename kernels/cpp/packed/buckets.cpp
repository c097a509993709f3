// Filling the buckets: tasks of each expert from counts, pairs scattered in their order.
#include "buckets.h"

#include <algorithm>

namespace moe {
namespace packed {

// Every task has at least one row, so there are at most as many tasks as rows.
Buckets::Buckets(const moe_weights &w, int32_t max_tokens)
    : num_experts_(w.num_experts), top_k_(w.top_k), has_shared_(w.has_shared),
      tasks_(static_cast<std::size_t>(max_tokens) * static_cast<std::size_t>(w.top_k + 1)),
      order_(static_cast<std::size_t>(max_tokens) * static_cast<std::size_t>(w.top_k)),
      next_(static_cast<std::size_t>(w.num_experts) + 1) {
    tasks_.zero();
    order_.zero();
    next_.zero();
}

void Buckets::add_tasks(int32_t expert, int32_t begin, int32_t end, int32_t largest) {
    for (; begin < end; begin += largest) {
        tasks_[static_cast<std::size_t>(task_count_++)] =
            Task{expert, begin, std::min(largest, end - begin)};
    }
}

void Buckets::fill(const int32_t *ids, int32_t n, int32_t largest) {
    int32_t *next = next_.data();
    std::fill(next, next + num_experts_ + 1, 0);
    const int32_t pairs = n * top_k_;
    for (int32_t i = 0; i < pairs; ++i) {
        ++next[ids[i] + 1];
    }
    for (int32_t e = 0; e < num_experts_; ++e) {
        next[e + 1] += next[e];
    }
    task_count_ = 0;
    for (int32_t e = 0; e < num_experts_; ++e) {
        add_tasks(e, next[e], next[e + 1], largest);
    }
    // The shared expert's tasks come last: they are equal in size and even out the end.
    if (has_shared_) {
        add_tasks(num_experts_, 0, n, largest);
    }
    for (int32_t i = 0; i < pairs; ++i) {
        order_[static_cast<std::size_t>(next[ids[i]]++)] = i;
    }
}

} // namespace packed
} // namespace moe
