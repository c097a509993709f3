// Whether this CPU, and the kernel on it, can run an instruction-set path.
//
// Source: CPUID leaves 1, 7 (0 and 1) and 0x80000001 and XCR0, Intel SDM volume 2A (CPUID) and volume 1,
// chapter 13 (XSAVE); the feature lists are the levels x86-64-v3 and v4 of the x86-64 psABI. Asked
// here and not of __builtin_cpu_supports, which answers no in some compilers' runtimes. On RISC-V,
// where programs can ask for nothing but AT_HWCAP, which emulators and older kernels leave empty, an
// instruction of the path is tried (The RISC-V Instruction Set Manual, volume 1: vsetivli came with
// version 1.0 of V).
#pragma once

#include <cstddef>
#include <cstring>
#include <string>

#include "tile_permission.h"

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__riscv)
#include <csetjmp>
#include <csignal>
#endif

namespace bench {

#if defined(__x86_64__)

struct CpuidBit {
    const char *name;
    unsigned int leaf, subleaf;
    int reg; // 0 eax .. 3 edx
    int bit;
};

constexpr CpuidBit kLevel3[] = {
    {"osxsave", 1, 0, 2, 27}, {"avx", 1, 0, 2, 28},  {"fma", 1, 0, 2, 12},
    {"f16c", 1, 0, 2, 29},    {"movbe", 1, 0, 2, 22}, {"avx2", 7, 0, 1, 5},
    {"bmi1", 7, 0, 1, 3},     {"bmi2", 7, 0, 1, 8},   {"abm", 0x80000001u, 0, 2, 5}};
constexpr CpuidBit kAvxVnni[] = {{"avx_vnni", 7, 1, 0, 4}};
constexpr CpuidBit kAvx512Vnni[] = {
    {"avx512f", 7, 0, 1, 16},  {"avx512bw", 7, 0, 1, 30}, {"avx512cd", 7, 0, 1, 28},
    {"avx512dq", 7, 0, 1, 17}, {"avx512vl", 7, 0, 1, 31}, {"avx512_vnni", 7, 0, 2, 11}};
constexpr CpuidBit kAmxInt8[] = {{"amx_tile", 7, 0, 3, 24}, {"amx_int8", 7, 0, 3, 25}};

// Parts of XCR0: registers that the kernel saves.
constexpr unsigned int kYmm = 0x6, kZmm = 0xe6, kTiles = 0x60000;

inline bool kernel_saves(unsigned int state) {
    unsigned int low = 0;
    unsigned int high = 0;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (low & state) == state;
}

// The first feature that is missing; empty when all are there.
template <std::size_t N> std::string first_missing(const CpuidBit (&features)[N]) {
    for (const CpuidBit &feature : features) {
        unsigned int r[4] = {};
        const int known =
            __get_cpuid_count(feature.leaf, feature.subleaf, &r[0], &r[1], &r[2], &r[3]);
        if (known == 0 || (r[feature.reg] >> feature.bit & 1u) == 0) {
            return feature.name;
        }
    }
    return "";
}

inline std::string missing_of_x86_64_v3() {
    const std::string missing = first_missing(kLevel3);
    if (!missing.empty()) {
        return missing;
    }
    return kernel_saves(kYmm) ? "" : "256-bit registers saved by the kernel";
}

inline std::string missing_of_avx512_vnni() {
    const std::string missing = first_missing(kAvx512Vnni);
    if (!missing.empty()) {
        return missing;
    }
    return kernel_saves(kZmm) ? "" : "512-bit registers saved by the kernel";
}

inline std::string missing_of_amx_int8() {
    const std::string missing = first_missing(kAmxInt8);
    if (!missing.empty()) {
        return missing;
    }
    if (!kernel_saves(kTiles)) {
        return "tiles saved by the kernel";
    }
    const int refusal = moe::request_tiles();
    return refusal == 0 ? ""
                        : std::string("tiles, which the system refuses (" MOE_TILE_REQUEST ": ") +
                              std::strerror(refusal) + ")";
}

// The paths after avx2 need what those before them need.
inline std::string missing_of_x86_path(const std::string &isa) {
    std::string missing = missing_of_x86_64_v3();
    if (missing.empty() && isa == "avx_vnni") {
        missing = first_missing(kAvxVnni);
    }
    if (missing.empty() && (isa == "avx512_vnni" || isa == "amx_int8")) {
        missing = missing_of_avx512_vnni();
    }
    if (missing.empty() && isa == "amx_int8") {
        missing = missing_of_amx_int8();
    }
    return missing;
}

#elif defined(__riscv)

inline sigjmp_buf illegal_instruction;

// Whether an instruction is carried out. A handler that is there already stays: it may be what
// carries it out.
inline bool runs(void (*instruction)()) {
    struct sigaction before {};
    struct sigaction catching {};
    catching.sa_handler = [](int) { siglongjmp(illegal_instruction, 1); };
    sigaction(SIGILL, nullptr, &before);
    const bool ours = (before.sa_flags & SA_SIGINFO) == 0 && before.sa_handler == SIG_DFL;
    if (ours) {
        sigaction(SIGILL, &catching, nullptr);
    }
    volatile bool done = false;
    if (sigsetjmp(illegal_instruction, 1) == 0) {
        instruction();
        done = true;
    }
    sigaction(SIGILL, &before, nullptr);
    return done;
}

// vsetivli zero, 1, e8, m1, ta, ma
inline void try_vectors() { __asm__ volatile(".word 0xcc00f057"); }

// The length of a vector register: the control register vlenb.
inline unsigned long vector_bytes() {
    unsigned long bytes;
    __asm__ volatile("csrr %0, 0xc22" : "=r"(bytes));
    return bytes;
}

// vmadot v16, v0, v1 of SpacemiT's matrix extension, on elements of 8 bits
inline void try_matrices() {
    __asm__ volatile(".word 0xcc00f057\n\t"
                     ".insn r 0x2b, 3, 0x71, x16, x0, x1");
}

#endif

// The first feature that is missing for the path; empty when it can run.
inline std::string missing_feature(const std::string &isa) {
    if (isa == "rvv" || isa == "ime") {
#if defined(__riscv)
        if (!runs(try_vectors)) {
            return "vectors of version 1.0 (V)";
        }
        if (isa == "ime" && vector_bytes() != 32) {
            return "vector registers of 256 bits";
        }
        return isa == "rvv" || runs(try_matrices) ? "" : "SpacemiT's matrix extension (vmadot)";
#else
        return "a riscv64 CPU";
#endif
    }
    if (isa == "portable" || isa == "native") {
        return "";
    }
#if defined(__x86_64__)
    return missing_of_x86_path(isa);
#else
    return "an x86_64 CPU";
#endif
}

} // namespace bench
