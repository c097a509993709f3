#include "parallel.h"

#ifdef __linux__
#include <pthread.h>
#include <sched.h>
#endif

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

#ifdef __linux__

struct PinnedTeam::CpuMask {
    cpu_set_t cpus;
};

static int32_t nth_cpu(const cpu_set_t &cpus, int32_t n) {
    for (int32_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
        if (CPU_ISSET(cpu, &cpus) && n-- == 0) {
            return cpu;
        }
    }
    return -1;
}

PinnedTeam::PinnedTeam(int32_t threads, bool pin) : threads_(threads) {
    cpu_set_t cpus;
    if (!pin || pthread_getaffinity_np(pthread_self(), sizeof cpus, &cpus) != 0) {
        return;
    }
    allowed_ = new CpuMask{cpus};
    const int32_t count = CPU_COUNT(&cpus);
    run_team(threads, [&](int32_t thread, int32_t) {
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(nth_cpu(cpus, thread % count), &one);
        pthread_setaffinity_np(pthread_self(), sizeof one, &one);
    });
}

PinnedTeam::~PinnedTeam() {
    if (allowed_ == nullptr) {
        return;
    }
    const cpu_set_t cpus = allowed_->cpus;
    run_team(threads_, [&](int32_t, int32_t) {
        pthread_setaffinity_np(pthread_self(), sizeof cpus, &cpus);
    });
    delete allowed_;
}

#else

struct PinnedTeam::CpuMask {};
PinnedTeam::PinnedTeam(int32_t threads, bool) : threads_(threads) {}
PinnedTeam::~PinnedTeam() { delete allowed_; }

#endif

} // namespace moe
