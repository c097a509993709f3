// The thread pool by itself, for tests/kernels/test_thread_pool.py: C functions over one pool.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

#include <sched.h>

#include "cpus.h"
#include "thread_pool.h"

extern "C" {

moe::ThreadPool *hook_new(int32_t threads, int32_t pin) {
    return new moe::ThreadPool(threads, pin != 0);
}

void hook_delete(moe::ThreadPool *pool) { delete pool; }

int32_t hook_threads(const moe::ThreadPool *pool) { return pool->threads(); }

// Runs regions in which every thread counts one step, waits for the team, and looks at all counts.
// Returns how many counts were wrong, after all regions.
int64_t hook_wrong_counts(moe::ThreadPool *pool, int32_t regions, int32_t steps) {
    std::vector<int64_t> counts(static_cast<std::size_t>(pool->threads()) * 8);
    std::atomic<int64_t> wrong{0};
    int64_t expected = 0;
    for (int32_t r = 0; r < regions; ++r) {
        pool->run([&](int32_t thread, int32_t team) {
            for (int32_t step = 1; step <= steps; ++step) {
                pool->expect_arrival(thread);
                ++counts[static_cast<std::size_t>(thread) * 8];
                pool->barrier(thread);
                for (int32_t t = 0; t < team; ++t) {
                    wrong += counts[static_cast<std::size_t>(t) * 8] != expected + step;
                }
                pool->barrier(thread);
            }
        });
        expected += steps;
        for (int32_t t = 0; t < pool->threads(); ++t) {
            wrong += counts[static_cast<std::size_t>(t) * 8] != expected;
        }
    }
    return wrong;
}

// One region in which the last thread is busy for so long and all others wait for it at a barrier.
void hook_wait_for_last(moe::ThreadPool *pool, int32_t milliseconds) {
    pool->run([&](int32_t thread, int32_t team) {
        if (thread == team - 1) {
            std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
        }
        pool->barrier(thread);
    });
}

uint64_t hook_waited_ns(const moe::ThreadPool *pool, int32_t thread) {
    return pool->waited_ns(thread);
}

uint64_t hook_region_ns(const moe::ThreadPool *pool) { return pool->region_ns(); }

// allowed: (threads) the number of CPUs that each thread may run on.
void hook_allowed_cpus(moe::ThreadPool *pool, int32_t *allowed) {
    pool->run([&](int32_t thread, int32_t) {
        cpu_set_t cpus;
        sched_getaffinity(0, sizeof cpus, &cpus);
        allowed[thread] = CPU_COUNT(&cpus);
    });
}

double hook_region_cost_ns(moe::ThreadPool *pool) { return pool->region_cost_ns(); }

int32_t hook_cpus_of_quota(const char *text) { return moe::cpus_of_quota(text); }

int32_t hook_usable_cpus(void) { return moe::usable_cpus(); }
}
