// OpenMP's teams of threads where the compiler has it, one thread otherwise: what the stages that
// show OpenMP use. The others have a pool of their own, thread_pool.h.
#pragma once

#include <cstdint>

#include "cpus.h"
#include "share.h"

#ifdef _OPENMP
#include <omp.h>
#endif

namespace moe {

namespace {

// Calls body(thread, team_size) once on each thread of a team of at most `threads`.
template <class Body> void run_team([[maybe_unused]] int32_t threads, const Body &body) {
#ifdef _OPENMP
#pragma omp parallel num_threads(threads)
    body(static_cast<int32_t>(omp_get_thread_num()), static_cast<int32_t>(omp_get_num_threads()));
#else
    body(0, 1);
#endif
}

} // namespace

// Waits for the whole team; only inside run_team.
static inline void team_barrier() {
#ifdef _OPENMP
#pragma omp barrier
#endif
}

// How many threads a team of `threads` really gets (OMP_THREAD_LIMIT, no OpenMP).
int32_t available_threads(int32_t threads);

// Why it can be fewer than asked for.
const char *thread_limit_reason();

// Binds thread i of the team to the i-th allowed CPU, modulo their number; the destructor gives
// every thread the creator's CPUs back. Does nothing where affinity cannot be set.
class PinnedTeam {
public:
    PinnedTeam(int32_t threads, bool pin);
    ~PinnedTeam();
    PinnedTeam(const PinnedTeam &) = delete;
    PinnedTeam &operator=(const PinnedTeam &) = delete;

private:
    const CpuSet cpus_;
    const CallerBinding caller_;
    const int32_t threads_;
    const bool pin_;
};

} // namespace moe
