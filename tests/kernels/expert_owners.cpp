// Buckets and their owners by themselves, for ctypes.
#include <cstring>

#include "packed/expert_owners.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

using moe::packed::Buckets;
using moe::packed::ExpertOwners;
using moe::packed::Task;

namespace {

moe_weights layer(int32_t num_experts, int32_t top_k, int32_t has_shared) {
    moe_weights w{};
    w.num_experts = num_experts;
    w.top_k = top_k;
    w.has_shared = has_shared;
    return w;
}

struct Shared {
    Shared(const moe_weights &w, const int32_t *ids, int32_t n, int32_t largest, int32_t team)
        : buckets(w, n), owners(team) {
        buckets.fill(ids, n, largest);
        owners.share_out(buckets, w, team);
    }

    Buckets buckets;
    ExpertOwners owners;
};

} // namespace

// ids: (n, K).
EXPORT void *owners_new(int32_t num_experts, int32_t top_k, int32_t has_shared, const int32_t *ids,
                        int32_t n, int32_t largest, int32_t team) {
    return new Shared(layer(num_experts, top_k, has_shared), ids, n, largest, team);
}
EXPORT void owners_delete(void *shared) { delete static_cast<Shared *>(shared); }
EXPORT int32_t owners_tasks(void *shared) { return static_cast<Shared *>(shared)->buckets.task_count(); }
EXPORT int32_t owners_take(void *shared, int32_t thread) {
    return static_cast<Shared *>(shared)->owners.take(thread);
}
// task: expert, begin, count
EXPORT void owners_task(void *shared, int32_t i, int32_t *task) {
    static_assert(sizeof(Task) == 3 * sizeof(int32_t), "");
    std::memcpy(task, &static_cast<Shared *>(shared)->buckets.task(i), sizeof(Task));
}
