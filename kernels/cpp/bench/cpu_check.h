// Whether this CPU, and the kernel on it, can run an instruction-set path.
//
// Source: CPUID leaves 1, 7 and 0x80000001 and XCR0, Intel SDM volume 2A (CPUID) and volume 1,
// chapter 13 (XSAVE); the feature list is the x86-64-v3 level of the x86-64 psABI. Asked here and
// not of __builtin_cpu_supports, which answers no in some compilers' runtimes.
#pragma once

#include <string>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace bench {

#if defined(__x86_64__)

// Whether the kernel saves the 128-bit and 256-bit vector registers.
inline bool kernel_saves_ymm() {
    unsigned int low = 0;
    unsigned int high = 0;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (low & 6u) == 6u;
}

// The first feature of x86-64-v3 that is missing; empty when all are there.
inline std::string missing_of_x86_64_v3() {
    unsigned int a = 0;
    unsigned int b = 0;
    unsigned int c = 0;
    unsigned int d = 0;
    unsigned int extended = 0;
    unsigned int leaf7 = 0;
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d) != 0) {
        leaf7 = b;
    }
    if (__get_cpuid(0x80000001u, &a, &b, &c, &d) != 0) {
        extended = c;
    }
    __get_cpuid(1, &a, &b, &c, &d);
    const struct {
        const char *name;
        bool present;
    } features[] = {{"osxsave", (c >> 27 & 1u) != 0}, {"avx", (c >> 28 & 1u) != 0},
                    {"fma", (c >> 12 & 1u) != 0},     {"f16c", (c >> 29 & 1u) != 0},
                    {"movbe", (c >> 22 & 1u) != 0},   {"avx2", (leaf7 >> 5 & 1u) != 0},
                    {"bmi1", (leaf7 >> 3 & 1u) != 0}, {"bmi2", (leaf7 >> 8 & 1u) != 0},
                    {"abm", (extended >> 5 & 1u) != 0}};
    for (const auto &feature : features) {
        if (!feature.present) {
            return feature.name;
        }
    }
    return kernel_saves_ymm() ? "" : "256-bit registers saved by the kernel";
}

#endif

// The first feature that is missing for the path; empty when it can run.
inline std::string missing_feature(const std::string &isa) {
    if (isa != "avx2") {
        return "";
    }
#if defined(__x86_64__)
    return missing_of_x86_64_v3();
#else
    return "an x86_64 CPU";
#endif
}

} // namespace bench
