// Probes of the machine: small loops whose work per round is known exactly, so that a rate follows
// from a time. Each is written so that the compiler can neither drop nor hoist its work: operands
// pass through empty assembler statements, and there are enough independent accumulators to hide
// the latency of the instruction.
#ifndef MOE_SUPPORT_PROBES_H
#define MOE_SUPPORT_PROBES_H

#include <cstddef>
#include <cstdint>

namespace moe::probes {

// What a probe's rate counts.
enum class Unit : int32_t {
    kInt8Macs = 0,  // exact int8 x int8 products added into int32
    kFp32Macs = 1,  // fp32 products added: one multiply and one add
    kBytesRead = 2, // bytes loaded
    kLoads = 3      // loads, each address known only from the one before
};

struct Probe {
    const char *name;
    Unit unit;
    // Work of one round, in units; for kBytesRead one round reads `bytes` once, and this is 0.
    int64_t per_round;
    // Why it cannot run here, written into `reason`; true when it can.
    bool (*supported)(char *reason, size_t size);
    // Does `rounds` rounds; `buffer` (bytes, 64-byte aligned) is only used by memory probes.
    void (*run)(const unsigned char *buffer, int64_t bytes, int64_t rounds);
};

struct ProbeList {
    const Probe *first;
    int32_t count;
};

ProbeList portable_probes();
ProbeList x86_probes();
ProbeList arm_probes();

// Links the 64-byte lines of a buffer into one cycle in an order that no prefetcher foresees; a number
// of lines that is no power of two is rounded down to one.
void link_lines(unsigned char *buffer, int64_t bytes);

constexpr int64_t kLineBytes = 64;

} // namespace moe::probes
#endif
