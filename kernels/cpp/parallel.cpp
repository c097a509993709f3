// How many threads an OpenMP team really gets.
#include "parallel.h"

namespace moe {

int32_t available_threads(int32_t threads) {
    int32_t available = 1;
    run_team(threads, [&](int32_t thread, int32_t team) {
        if (thread == 0) {
            available = team;
        }
    });
    return available;
}

const char *thread_limit_reason() {
#ifdef _OPENMP
    return "the OpenMP runtime limits the team (OMP_THREAD_LIMIT, OMP_DYNAMIC)";
#else
    return "built without OpenMP";
#endif
}

PinnedTeam::PinnedTeam(int32_t threads, bool pin)
    : cpus_(CpuSet::of_caller()), caller_(pin), threads_(threads), pin_(pin) {
    if (!pin_) {
        return;
    }
    run_team(threads_, [&](int32_t thread, int32_t) {
        if (thread > 0) {
            cpus_.bind_caller_to(thread);
        }
    });
}

PinnedTeam::~PinnedTeam() {
    if (!pin_) {
        return;
    }
    run_team(threads_, [&](int32_t thread, int32_t) {
        if (thread > 0) {
            cpus_.bind_caller();
        }
    });
}

} // namespace moe
