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

constexpr int kChecksPerClock = 8;

// Tells the core that this is a wait: its sibling gets the execution units.
inline void relax() {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory");
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

void Signal::raise() {
    // Sequential consistency on both sides: either the sleeper is seen here, or it sees the change.
    value_.fetch_add(1, std::memory_order_seq_cst);
    if (sleepers_.load(std::memory_order_seq_cst) == 0) {
        return;
    }
#ifdef __linux__
    syscall(SYS_futex, &value_, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
#endif
}

void Signal::wait(uint32_t old, uint64_t spin_ticks) {
    if (spin_ticks > 0) {
        const uint64_t start = wait_ticks();
        do {
            for (int i = 0; i < kChecksPerClock; ++i) {
                if (value() != old) {
                    return;
                }
                relax();
            }
        } while (wait_ticks() - start < spin_ticks);
    }
    while (value() == old) {
        sleep(old);
    }
}

void Signal::reset() {
    value_.store(0, std::memory_order_relaxed);
    sleepers_.store(0, std::memory_order_relaxed);
}

void Signal::sleep(uint32_t old) {
#ifdef __linux__
    static_assert(sizeof value_ == sizeof old, "a futex is the word itself");
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    syscall(SYS_futex, &value_, FUTEX_WAIT_PRIVATE, old, nullptr, nullptr, 0);
    sleepers_.fetch_sub(1, std::memory_order_relaxed);
#else
    (void)old;
    std::this_thread::sleep_for(std::chrono::microseconds(50));
#endif
}

} // namespace moe
