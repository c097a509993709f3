// The core's real clock: a chain of dependent instructions of known latency, timed.
//
// x86-64: 64-bit imul takes 3 cycles from Nehalem and from Zen 1 on (Agner Fog, instruction tables);
// additions of constants would not do, recent cores fold them away at renaming. Elsewhere: eor/xor
// of registers, 1 cycle on every core.
#include <cstdint>
#include <ctime>

#include "moe_prof.h"

namespace {

constexpr int kUnrolled = 50;

#if defined(__x86_64__)
constexpr int kLatencyCycles = 3;
#define MOE_STEP "imul %1, %0\n\t"
#elif defined(__aarch64__)
constexpr int kLatencyCycles = 1;
#define MOE_STEP "eor %0, %0, %1\n\t"
#elif defined(__riscv)
constexpr int kLatencyCycles = 1;
#define MOE_STEP "xor %0, %0, %1\n\t"
#endif

#ifdef MOE_STEP
#define MOE_STEPS_5 MOE_STEP MOE_STEP MOE_STEP MOE_STEP MOE_STEP
#define MOE_STEPS_50                                                                              \
    MOE_STEPS_5 MOE_STEPS_5 MOE_STEPS_5 MOE_STEPS_5 MOE_STEPS_5 MOE_STEPS_5 MOE_STEPS_5           \
        MOE_STEPS_5 MOE_STEPS_5 MOE_STEPS_5

double chain_s(int64_t rounds) {
    uint64_t value = 3, operand = 5;
    timespec start, end;
    clock_gettime(CLOCK_MONOTONIC, &start);
    for (int64_t round = 0; round < rounds; ++round) {
        asm volatile(MOE_STEPS_50 : "+r"(value) : "r"(operand));
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    return static_cast<double>(end.tv_sec - start.tv_sec) +
           1e-9 * static_cast<double>(end.tv_nsec - start.tv_nsec);
}
#endif

} // namespace

extern "C" {

// Highest clock seen over `repeats` chains of about `chain_us` microseconds at 1 GHz, in Hz; 0 where
// no chain of known latency is written down for the architecture. An interrupted chain only looks
// slower, so the highest is the truest.
MOE_API double moe_clock_hz(int32_t repeats, int32_t chain_us);
}

double moe_clock_hz(int32_t repeats, int32_t chain_us) {
#ifdef MOE_STEP
    const int64_t rounds = int64_t{chain_us} * 1000 / (kUnrolled * kLatencyCycles) + 1;
    const double cycles = static_cast<double>(rounds) * kUnrolled * kLatencyCycles;
    double best_hz = 0;
    for (int32_t repeat = 0; repeat < repeats; ++repeat) {
        const double elapsed_s = chain_s(rounds);
        if (elapsed_s > 0 && cycles / elapsed_s > best_hz) {
            best_hz = cycles / elapsed_s;
        }
    }
    return best_hz;
#else
    (void)repeats;
    (void)chain_us;
    return 0;
#endif
}
