// Measured ceilings: runs one probe on a team of threads and gives the team's rate.
//
// Every thread has its own buffer, allocated and first touched by itself. A batch starts at a
// barrier; its rate is all threads' work over the time from the first start to the last end, so that
// threads which had to share a CPU are not counted as if they had run alone. The best batch counts:
// a ceiling is what the machine can do, disturbances only lower it.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <new>
#include <system_error>
#include <thread>
#include <vector>

#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>

#include "moe_prof.h"
#include "support/probes.h"

namespace moe::probes {
namespace {

constexpr size_t kHugePageBytes = size_t{2} << 20;

double now_s() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

const Probe *find(const char *name) {
    for (const ProbeList &list : {portable_probes(), x86_probes(), arm_probes()}) {
        for (int32_t i = 0; i < list.count; ++i) {
            if (std::strcmp(list.first[i].name, name) == 0) {
                return &list.first[i];
            }
        }
    }
    return nullptr;
}

// A thread's working set, on huge pages where the system gives them: what is measured is the cache,
// not the walk through page tables.
class WorkingSet {
  public:
    WorkingSet(int64_t bytes, bool linked) : bytes_(bytes) {
        if (bytes == 0) {
            return;
        }
        const size_t unit = static_cast<size_t>(bytes) >= kHugePageBytes ? kHugePageBytes : 4096;
        const size_t size = (static_cast<size_t>(bytes) + unit - 1) / unit * unit;
        data_ = static_cast<unsigned char *>(std::aligned_alloc(unit, size));
        if (data_ == nullptr) {
            return;
        }
        madvise(data_, size, MADV_HUGEPAGE); // a hint; without it only the tail of large sets slows
        if (linked) {
            link_lines(data_, bytes);
        } else {
            std::memset(data_, 1, static_cast<size_t>(bytes));
        }
    }
    ~WorkingSet() { std::free(data_); }
    WorkingSet(const WorkingSet &) = delete;
    WorkingSet &operator=(const WorkingSet &) = delete;

    bool ok() const { return bytes_ == 0 || data_ != nullptr; }
    const unsigned char *data() const { return data_; }

  private:
    int64_t bytes_;
    unsigned char *data_ = nullptr;
};

// Reusable: every wait ends when all members of the team have come. Waiting yields the CPU.
class Barrier {
  public:
    explicit Barrier(int32_t members) : members_(members) {}

    void wait() {
        const int32_t turn = turn_.load(std::memory_order_acquire);
        if (come_.fetch_add(1, std::memory_order_acq_rel) + 1 == members_) {
            come_.store(0, std::memory_order_relaxed);
            turn_.store(turn + 1, std::memory_order_release);
            return;
        }
        while (turn_.load(std::memory_order_acquire) == turn) {
            sched_yield();
        }
    }

  private:
    const int32_t members_;
    std::atomic<int32_t> come_{0};
    std::atomic<int32_t> turn_{0};
};

struct Plan {
    const Probe *probe;
    int64_t bytes;
    double batch_s;
    int32_t batches;
};

struct Team {
    explicit Team(int32_t size)
        : barrier(size), start_s(static_cast<size_t>(size)), end_s(static_cast<size_t>(size)) {}
    Barrier barrier;
    std::vector<double> start_s, end_s;
    std::atomic<int64_t> rounds{0};
    std::atomic<bool> failed{false};
    double best_s = 0; // duration of the best batch, written by member 0
};

// Rounds that take about batch_s on this thread.
int64_t calibrate(const Plan &plan, const unsigned char *data) {
    int64_t rounds = 1;
    for (;;) {
        const double start = now_s();
        plan.probe->run(data, plan.bytes, rounds);
        const double elapsed = now_s() - start;
        if (elapsed >= plan.batch_s / 4 || rounds > (int64_t{1} << 40)) {
            const double wanted = static_cast<double>(rounds) * plan.batch_s / elapsed;
            return wanted < 1 ? 1 : static_cast<int64_t>(wanted);
        }
        rounds *= elapsed > plan.batch_s / 64 ? 4 : 16;
    }
}

void pin_to(int32_t cpu) {
    if (cpu < 0) {
        return;
    }
    // Sized at run time: the fixed set would end at CPU 1023.
    cpu_set_t *set = CPU_ALLOC(static_cast<size_t>(cpu) + 1);
    if (set == nullptr) {
        return;
    }
    const size_t size = CPU_ALLOC_SIZE(static_cast<size_t>(cpu) + 1);
    CPU_ZERO_S(size, set);
    CPU_SET_S(static_cast<size_t>(cpu), size, set);
    pthread_setaffinity_np(pthread_self(), size, set); // where forbidden, the thread roams
    CPU_FREE(set);
}

void member(const Plan &plan, Team &team, int32_t index, int32_t cpu) {
    pin_to(cpu);
    const WorkingSet set(plan.bytes, plan.probe->unit == Unit::kLoads);
    if (!set.ok()) {
        team.failed = true;
    }
    team.barrier.wait();
    if (team.failed) {
        return;
    }
    if (index == 0) {
        team.rounds = calibrate(plan, set.data());
    }
    team.barrier.wait();
    const int64_t rounds = team.rounds;
    const size_t self = static_cast<size_t>(index);
    for (int32_t batch = 0; batch < plan.batches; ++batch) {
        team.barrier.wait();
        team.start_s[self] = now_s();
        plan.probe->run(set.data(), plan.bytes, rounds);
        team.end_s[self] = now_s();
        team.barrier.wait();
        if (index == 0) {
            double first = team.start_s[0], last = team.end_s[0];
            for (size_t i = 1; i < team.start_s.size(); ++i) {
                first = team.start_s[i] < first ? team.start_s[i] : first;
                last = team.end_s[i] > last ? team.end_s[i] : last;
            }
            if (team.best_s == 0 || last - first < team.best_s) {
                team.best_s = last - first;
            }
        }
    }
}

int32_t fail(char *reason, size_t size, const char *text) {
    std::snprintf(reason, size, "%s", text);
    return MOE_UNSUPPORTED;
}

double units_per_round(const Plan &plan) {
    return static_cast<double>(plan.probe->unit == Unit::kBytesRead ? plan.bytes
                                                                    : plan.probe->per_round);
}

int32_t measure(const Plan &plan, const std::vector<int32_t> &cpus, double *rate, char *reason,
                size_t size) {
    const int32_t members = static_cast<int32_t>(cpus.size());
    Team team(members);
    std::vector<std::thread> threads;
    threads.reserve(cpus.size());
    std::atomic<int32_t> go{0}; // 1: all threads exist, 2: one could not be made
    try {
        for (int32_t i = 0; i < members; ++i) {
            threads.emplace_back([&, i] {
                while (go == 0) {
                    sched_yield();
                }
                if (go == 1) {
                    member(plan, team, i, cpus[static_cast<size_t>(i)]);
                }
            });
        }
        go = 1;
    } catch (const std::system_error &) {
        go = 2;
    }
    for (std::thread &thread : threads) {
        thread.join();
    }
    if (go == 2) {
        return fail(reason, size, "the threads could not be started");
    }
    if (team.failed) {
        return fail(reason, size, "no memory for the working set");
    }
    const double work = units_per_round(plan) * static_cast<double>(team.rounds) * members;
    *rate = team.best_s > 0 ? work / team.best_s : 0;
    return MOE_OK;
}

} // namespace
} // namespace moe::probes

extern "C" {

// Rate of one probe on a team, in its unit per second.
//   name       of the probe: int8_avx2_words, fp32_avx512, read_portable, chase...
//   cpus       (threads) CPU of each thread, -1 leaves it free
//   bytes      working set of each thread for memory probes: a multiple of 512; else 0
//   batch_s    about how long one batch takes; the best of `batches` counts
//   reason     (reason_size) why there is no rate, when the status is MOE_UNSUPPORTED
// Returns MOE_OK, MOE_UNSUPPORTED, MOE_BAD_ARGUMENT, or MOE_UNKNOWN_VARIANT for a name that this
// build does not have.
MOE_API int32_t moe_probe_rate(const char *name, const int32_t *cpus, int32_t threads,
                               int64_t bytes, double batch_s, int32_t batches, double *rate,
                               char *reason, int32_t reason_size);
}

int32_t moe_probe_rate(const char *name, const int32_t *cpus, int32_t threads, int64_t bytes,
                       double batch_s, int32_t batches, double *rate, char *reason,
                       int32_t reason_size) {
    using namespace moe::probes;
    if (name == nullptr || cpus == nullptr || rate == nullptr || reason == nullptr ||
        threads < 1 || bytes < 0 || bytes % 512 != 0 || batches < 1 || reason_size < 1) {
        return MOE_BAD_ARGUMENT;
    }
    const size_t size = static_cast<size_t>(reason_size);
    reason[0] = '\0';
    const Probe *probe = find(name);
    if (probe == nullptr) {
        return MOE_UNKNOWN_VARIANT;
    }
    const bool memory = probe->unit == Unit::kBytesRead || probe->unit == Unit::kLoads;
    if (memory != (bytes > 0)) {
        return MOE_BAD_ARGUMENT;
    }
    if (!probe->supported(reason, size)) {
        return MOE_UNSUPPORTED;
    }
    try {
        const std::vector<int32_t> team(cpus, cpus + threads);
        return measure({probe, bytes, batch_s, batches}, team, rate, reason, size);
    } catch (const std::bad_alloc &) {
        return MOE_NO_MEMORY;
    }
}
