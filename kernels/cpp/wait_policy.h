// How a thread waits for another one: it spins for a while, then sleeps in the kernel.
//
// Spinning answers within 200 ns but takes the CPU from whoever else could run, the awaited thread
// included; a sleeper needs some microseconds to wake. So a wait spins for about as long as a
// wake-up costs, then sleeps: never worse than twice the best choice (the ski-rental rule), and
// little lost where the awaited thread itself waits for a CPU.
#pragma once

#include <atomic>
#include <cstdint>

namespace moe {

// How long a wait spins. Measured on a Xeon VM (Sapphire Rapids, 2 CPUs, Linux 6.18) that other
// programs kept busy: the answer of a spinning thread takes 0.2 us, of one that fell asleep just
// before 5 us, after 20 ms 13 us. Spinning for less than a wake-up is a trap: each thread falls
// asleep while the other one wakes, at every barrier (with 1 us: barriers of 2 us and more).
struct WaitPolicy {
    uint32_t inside_ns;  // at barriers and at the end of a region
    uint32_t between_ns; // for the next region
};
constexpr WaitPolicy kEnoughCpus{20'000, 50'000};
constexpr WaitPolicy kFewerCpus{0, 0}; // than threads that run: the awaited one needs this CPU

uint64_t wait_clock_ns();

// A clock for differences: a register where the processor has one that runs at a constant rate.
static inline uint64_t wait_ticks() {
#if defined(__x86_64__) || defined(__i386__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    uint64_t ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#else
    return wait_clock_ns();
#endif
}

// Rate of wait_ticks, from two readings of both clocks some time apart.
class TickRate {
public:
    TickRate() : ticks_(wait_ticks()), ns_(wait_clock_ns()) {}
    double ticks_per_ns() const {
        const uint64_t ns = wait_clock_ns() - ns_;
        return ns == 0 ? 1.0 : static_cast<double>(wait_ticks() - ticks_) / static_cast<double>(ns);
    }

private:
    uint64_t ticks_;
    uint64_t ns_;
};

// What one check of a spinning thread takes, measured anew.
uint64_t measure_ticks_per_check();

// A word that one thread moves forward and others wait for: step 0, 1, 2, ... modulo 2^32. It wants
// a cache line that nothing else lies in but what those who wait need next.
class Signal {
public:
    // Whether `step` has come: everything that was written before it is visible then.
    bool reached(uint32_t step) const {
        return static_cast<int32_t>(value_.load(std::memory_order_acquire) - step) >= 0;
    }
    // Moves on to `step`; only by the thread whose word it is. No system call unless somebody
    // sleeps.
    void publish(uint32_t step) {
        // Sequential consistency on both sides: either the sleeper is seen here, or it sees the
        // step.
        value_.store(step, std::memory_order_seq_cst);
        if (sleepers_.load(std::memory_order_seq_cst) != 0) {
            wake();
        }
    }
    // Calls the line back from those who looked at it, while there is time: the next publish() then
    // need not wait for it. Only by the thread whose word it is.
    void claim() {
        value_.store(value_.load(std::memory_order_relaxed), std::memory_order_relaxed);
    }
    // Returns when the step has come; spins for at most so many ticks, then sleeps. Returns the
    // ticks waited: after the last look at the clock, by the number of checks (reading it once more
    // would delay what was waited for).
    uint64_t wait(uint32_t step, uint64_t spin_ticks, uint64_t ticks_per_check);
    // As after construction; only when nobody waits.
    void reset();

private:
    void wake();
    void sleep(uint32_t step);

    std::atomic<uint32_t> value_{0};
    std::atomic<int32_t> sleepers_{0};
};

} // namespace moe
