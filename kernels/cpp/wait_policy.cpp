// Spinning, and sleeping by futex where there is one.
#include "wait_policy.h"

#include <chrono>
#include <thread>

#ifdef __linux__
#include <climits>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace moe {
namespace {

constexpr uint64_t kChecksPerClock = 8;

// Tells the core that this is a wait: its sibling gets the execution units.
inline void relax() {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory");
#elif defined(__riscv)
    __asm__ volatile(".insn i 0x0f, 0, x0, x0, 0x010" ::: "memory"); // pause, elsewhere a fence
#else
    std::atomic_signal_fence(std::memory_order_seq_cst);
#endif
}

} // namespace

uint64_t wait_clock_ns() {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return static_cast<uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

uint64_t measure_ticks_per_check() {
    constexpr uint64_t kChecks = 32;
    uint64_t least = UINT64_MAX; // other programs only make it longer
    for (int round = 0; round < 8; ++round) {
        const uint64_t start = wait_ticks();
        for (uint64_t i = 0; i < kChecks; ++i) {
            relax();
        }
        const uint64_t spent = wait_ticks() - start;
        least = spent < least ? spent : least;
    }
    return least / kChecks;
}

void Signal::wake() {
#ifdef __linux__
    syscall(SYS_futex, &value_, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
#endif
}

uint64_t Signal::wait(uint32_t step, uint64_t spin_ticks, uint64_t ticks_per_check) {
    uint64_t waited = 0;
    uint64_t start = 0;
    while (waited < spin_ticks) {
        for (uint64_t i = 0; i < kChecksPerClock; ++i) {
            if (reached(step)) {
                return waited + i * ticks_per_check;
            }
            relax();
        }
        const uint64_t now = wait_ticks();
        if (start == 0) {
            start = now - kChecksPerClock * ticks_per_check;
        }
        waited = now - start;
    }
    start = start == 0 ? wait_ticks() : start;
    while (!reached(step)) {
        sleep(step);
    }
    return wait_ticks() - start;
}

void Signal::reset() {
    value_.store(0, std::memory_order_relaxed);
    sleepers_.store(0, std::memory_order_relaxed);
}

void Signal::sleep(uint32_t step) {
#ifdef __linux__
    static_assert(sizeof value_ == sizeof step, "a futex is the word itself");
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    const uint32_t seen = value_.load(std::memory_order_seq_cst);
    if (static_cast<int32_t>(seen - step) < 0) {
        syscall(SYS_futex, &value_, FUTEX_WAIT_PRIVATE, seen, nullptr, nullptr, 0);
    }
    sleepers_.fetch_sub(1, std::memory_order_relaxed);
#else
    (void)step;
    std::this_thread::sleep_for(std::chrono::microseconds(50));
#endif
}

} // namespace moe
