// Teams of threads: OpenMP where the compiler has it, one thread otherwise.
#pragma once

#include <cstdint>

#ifdef _OPENMP
#include <omp.h>
#endif

namespace moe {

// The part [begin, end) of `count` items that belongs to `thread` of `threads`: contiguous, sizes
// differ by at most one (OpenMP's static schedule).
struct Share {
    int64_t begin;
    int64_t end;
};

static inline Share static_share(int64_t count, int32_t thread, int32_t threads) {
    const int64_t base = count / threads;
    const int64_t rest = count % threads;
    const int64_t begin = thread * base + (thread < rest ? thread : rest);
    return {begin, begin + base + (thread < rest ? 1 : 0)};
}

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
    struct CpuMask;
    CpuMask *allowed_ = nullptr;
    int32_t threads_;
};

} // namespace moe
