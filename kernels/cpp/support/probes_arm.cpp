// Probes of aarch64's dot-product instructions, as assembler text so that the compiler needs no
// flags for them; they run only when the kernel reports them.
#include "support/probes.h"

#if defined(__aarch64__) && defined(__linux__)

#include <cstdio>

#include <arm_neon.h>
#include <sys/auxv.h>

namespace moe::probes {
namespace {

constexpr int kChains = 12;

// Bits of AT_HWCAP and AT_HWCAP2. Source: Linux, arch/arm64/include/uapi/asm/hwcap.h.
constexpr unsigned long kDotProduct = 1ul << 20, kMatrixInt8 = 1ul << 13;

bool has_dot_product(char *reason, size_t size) {
    if ((getauxval(AT_HWCAP) & kDotProduct) != 0) {
        return true;
    }
    std::snprintf(reason, size, "this CPU has no dot product (asimddp)");
    return false;
}

bool has_matrix_int8(char *reason, size_t size) {
    if ((getauxval(AT_HWCAP2) & kMatrixInt8) != 0) {
        return true;
    }
    std::snprintf(reason, size, "this CPU has no int8 matrix multiply (i8mm)");
    return false;
}

void int8_neon_dot(const unsigned char *, int64_t, int64_t rounds) {
    int32x4_t sums[kChains] = {};
    int8x16_t a = vdupq_n_s8(-3), b = vdupq_n_s8(5);
    for (int64_t round = 0; round < rounds; ++round) {
        for (int32x4_t &sum : sums) {
            asm volatile(".arch_extension dotprod\n\tsdot %0.4s, %1.16b, %2.16b"
                         : "+w"(sum)
                         : "w"(a), "w"(b));
        }
    }
}

void int8_neon_i8mm(const unsigned char *, int64_t, int64_t rounds) {
    int32x4_t sums[kChains] = {};
    int8x16_t a = vdupq_n_s8(-3), b = vdupq_n_s8(5);
    for (int64_t round = 0; round < rounds; ++round) {
        for (int32x4_t &sum : sums) {
            asm volatile(".arch_extension i8mm\n\tsmmla %0.4s, %1.16b, %2.16b"
                         : "+w"(sum)
                         : "w"(a), "w"(b));
        }
    }
}

const Probe kProbes[] = {
    {"int8_neon_dot", Unit::kInt8Macs, kChains * 16, has_dot_product, int8_neon_dot},
    {"int8_neon_i8mm", Unit::kInt8Macs, kChains * 32, has_matrix_int8, int8_neon_i8mm},
};

} // namespace

ProbeList arm_probes() {
    return {kProbes, static_cast<int32_t>(sizeof(kProbes) / sizeof(kProbes[0]))};
}

} // namespace moe::probes

#else

namespace moe::probes {
ProbeList arm_probes() { return {nullptr, 0}; }
} // namespace moe::probes

#endif
