// A team of threads that stays: workers start with the pool, wait between regions and end with it.
//
// A region runs one function on every thread of the team; thread 0 is the caller. Waiting, between
// regions and at barriers, follows wait_policy.h. The time that each thread waits inside regions is
// counted always.
//
// Every thread owns one signal, the number of points it has passed: the start of a region (thread 0
// only), each barrier, and its end. A barrier is one store to the own signal and a look at the
// others'; the region's function lies in the same line as thread 0's signal.
//
// Pools are independent: two callers may run two pools at once, each pool has one caller at a time.
// In a forked child the workers are started anew by the first region.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "cpus.h"
#include "wait_policy.h"

namespace moe {

class ThreadPool {
public:
    // Starts threads - 1 workers, or as many as the system gives. pin: thread i is bound to the
    // i-th allowed CPU, the creator included, until the pool ends.
    ThreadPool(int32_t threads, bool pin);
    ~ThreadPool();
    ThreadPool(const ThreadPool &) = delete;
    ThreadPool &operator=(const ThreadPool &) = delete;

    int32_t threads() const { return threads_; }

    // Calls body(thread, team) once on each thread and returns when all have returned. team is
    // threads(), or fewer in a forked child that cannot start as many.
    template <class Body> void run(const Body &body) {
        if (threads_ == 1) {
            body(0, 1);
            return;
        }
        run_region(
            [](const void *object, int32_t thread, int32_t team) {
                (*static_cast<const Body *>(object))(thread, team);
            },
            &body);
    }

    // Waits for the whole team; only inside a region, by every thread of it.
    void barrier(int32_t thread) {
        if (threads_ > 1) {
            wait_for_team(thread);
        }
    }

    // To be called, inside a region, some time before the thread's next barrier or its end: makes that
    // cheaper. Changes nothing else.
    void expect_arrival(int32_t thread);

    // What a region with a barrier costs when nothing disturbs it, measured now, in ns; 0 for a team of
    // one. Not to be asked inside a region.
    double region_cost_ns();

    // Time inside regions in which the thread waited, and the regions' time, since the pool began;
    // not to be asked during a region. Regions of a team of one are not counted.
    uint64_t waited_ns(int32_t thread) const;
    uint64_t region_ns() const;

private:
    using Function = void (*)(const void *, int32_t, int32_t);
    struct Lane;
    struct Worker;
    struct Post;
    struct SpinTicks {
        uint64_t inside = 0, between = 0; // as in WaitPolicy
    };

    static void *worker_main(void *argument);
    SpinTicks spin_ticks(const WaitPolicy &policy) const;
    const SpinTicks &spin_for(int32_t running) const;
    void start_workers();
    void restart_after_fork();
    void run_region(Function function, const void *object);
    void wait_for_team(int32_t thread);
    uint64_t wait_for(int32_t thread, uint32_t step, uint64_t spin_ticks);
    uint64_t wait_for_others(int32_t thread, uint32_t step, uint64_t spin_ticks);
    void work(int32_t thread);
    uint64_t to_ns(uint64_t ticks) const;

    const TickRate rate_; // first: reading the CPUs' limits below gives it time to be exact
    const CpuSet cpus_;
    const bool pin_;
    CallerBinding caller_;
    const bool inherits_binding_; // new threads come with the mask of a bound creator
    int32_t threads_;
    const int32_t usable_cpus_;
    uint32_t fork_generation_ = 0;
    std::unique_ptr<Post[]> posts_;     // (threads)
    std::unique_ptr<Lane[]> lanes_;     // (threads)
    std::unique_ptr<Worker[]> workers_; // (threads - 1)
    SpinTicks enough_cpus_, fewer_cpus_;
    uint64_t ticks_per_check_ = 0;
    uint64_t region_ticks_ = 0;
};

} // namespace moe
