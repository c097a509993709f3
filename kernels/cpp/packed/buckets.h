// Tokens grouped by expert, and the tasks that follow from it.
#pragma once

#include "../aligned_array.h"
#include "moe_prof.h"

namespace moe {
namespace packed {

// `count` rows of one expert: order[begin..) for a routed one, tokens begin.. for the shared one.
struct Task {
    int32_t expert;
    int32_t begin;
    int32_t count;
};

class Buckets {
public:
    Buckets(const moe_weights &w, int32_t max_tokens);

    // ids: (n, K). Fills order and tasks; a task has at most `largest` rows.
    void fill(const int32_t *ids, int32_t n, int32_t largest);

    int32_t task_count() const { return task_count_; }
    const Task &task(int32_t i) const { return tasks_[static_cast<std::size_t>(i)]; }
    // (n * K): indices t * K + k, grouped by expert, in the order of tokens inside a group.
    const int32_t *order() const { return order_.data(); }
    int64_t bytes() const { return tasks_.bytes() + order_.bytes() + next_.bytes(); }

private:
    void add_tasks(int32_t expert, int32_t begin, int32_t end, int32_t largest);

    const int32_t num_experts_, top_k_, has_shared_;
    AlignedArray<Task> tasks_;
    AlignedArray<int32_t> order_;
    AlignedArray<int32_t> next_; // (E + 1): where the next index of an expert goes
    int32_t task_count_ = 0;
};

} // namespace packed
} // namespace moe
