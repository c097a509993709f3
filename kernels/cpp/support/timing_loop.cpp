// A loop over forwards that is timed here, so that no interpreter or foreign call is counted.
#include <cstdint>
#include <ctime>

#include "moe_prof.h"

extern "C" {

typedef int32_t (*moe_forward_function)(moe_plan *, const float *, float *, int64_t);

// Times `batches` batches of `iterations` forwards each; batch_ns: (batches), wall time in ns.
// Stops at the first forward that fails and returns its status.
MOE_API int32_t moe_time_forward(moe_forward_function forward, moe_plan *plan, const float *x,
                                 float *y, int64_t num_tokens, int64_t iterations, int64_t batches,
                                 uint64_t *batch_ns);
}

static uint64_t now_ns() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<uint64_t>(now.tv_sec) * 1000000000u + static_cast<uint64_t>(now.tv_nsec);
}

int32_t moe_time_forward(moe_forward_function forward, moe_plan *plan, const float *x, float *y,
                         int64_t num_tokens, int64_t iterations, int64_t batches,
                         uint64_t *batch_ns) {
    for (int64_t batch = 0; batch < batches; ++batch) {
        const uint64_t start_ns = now_ns();
        for (int64_t i = 0; i < iterations; ++i) {
            const int32_t status = forward(plan, x, y, num_tokens);
            if (status != MOE_OK) {
                return status;
            }
        }
        batch_ns[batch] = now_ns() - start_ns;
    }
    return MOE_OK;
}
