// Probes of x86-64's wider instructions. The file is compiled for the baseline; each function names
// the instructions it uses, and runs only after the CPU was asked for them. The arithmetic is written
// as assembler statements: from intrinsics compilers made loops with register copies in between.
#include "support/probes.h"

#if defined(__x86_64__)

// Compilers of this age come with assemblers that know AVX-VNNI and AMX.
#if defined(__clang__) ? __clang_major__ >= 12 : __GNUC__ >= 11
#define MOE_KNOWS_AMX 1
#endif

#include <cstdio>
#include <cstring>

#include <cpuid.h>
#include <immintrin.h>

#include "tile_permission.h"

namespace moe::probes {
namespace {

// Independent chains: at least latency (5) x instructions per cycle (2), within 16 or 32 registers.
constexpr int kChains = 12;
constexpr int kByteChains = 4; // in one asm statement

// CPUID leaf 7: (subleaf, register, bit). Source: Intel SDM volume 2A, CPUID.
struct Feature {
    const char *name;
    int subleaf;
    int reg; // 0 eax, 1 ebx, 2 ecx, 3 edx
    int bit;
};
constexpr Feature kAvx2{"AVX2", 0, 1, 5};
constexpr Feature kAvx512F{"AVX-512F", 0, 1, 16};
constexpr Feature kAvx512Vnni{"AVX-512 VNNI", 0, 2, 11};

constexpr uint64_t kYmmState = 0x6, kZmmState = 0xE6;

uint64_t enabled_state() {
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (!__get_cpuid(1, &a, &b, &c, &d) || (c & (1u << 27)) == 0) {
        return 0; // no XSAVE
    }
    unsigned low = 0, high = 0;
    asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (static_cast<uint64_t>(high) << 32) | low;
}

bool has(const Feature &feature, uint64_t state, char *reason, size_t size) {
    unsigned regs[4] = {};
    const bool leaf = __get_cpuid_count(7, static_cast<unsigned>(feature.subleaf), &regs[0],
                                        &regs[1], &regs[2], &regs[3]) != 0;
    if (!leaf || (regs[feature.reg] & (1u << feature.bit)) == 0) {
        std::snprintf(reason, size, "this CPU has no %s", feature.name);
        return false;
    }
    if ((enabled_state() & state) != state) {
        std::snprintf(reason, size, "the system does not enable the registers of %s", feature.name);
        return false;
    }
    return true;
}

bool has_avx2(char *reason, size_t size) { return has(kAvx2, kYmmState, reason, size); }
bool has_avx512(char *reason, size_t size) { return has(kAvx512F, kZmmState, reason, size); }
bool has_avx512_vnni(char *reason, size_t size) {
    return has(kAvx512Vnni, kZmmState, reason, size);
}

__attribute__((target("avx2"))) void int8_avx2_words(const unsigned char *, int64_t,
                                                     int64_t rounds) {
    __m256i sums[kChains] = {};
    const __m256i a = _mm256_set1_epi16(-3), b = _mm256_set1_epi16(5);
    for (int64_t round = 0; round < rounds; ++round) {
        for (__m256i &sum : sums) {
            __m256i products;
            asm volatile("vpmaddwd %2, %3, %1\n\tvpaddd %1, %0, %0"
                         : "+x"(sum), "=&x"(products)
                         : "x"(a), "x"(b));
        }
    }
}

// The sequence of packed/avx2/qs8_gemm_tile__avx2.h, four of a kind together: the weights' bits flipped
// where the activation is negative, its size as unsigned. 2 * 127 * 128 fits into int16.
__attribute__((target("avx2"))) void int8_avx2_bytes(const unsigned char *, int64_t,
                                                     int64_t rounds) {
    __m256i sums[kByteChains] = {};
    const __m256i size = _mm256_set1_epi8(127), flip = _mm256_set1_epi8(-1);
    const __m256i w = _mm256_set1_epi8(-128), ones = _mm256_set1_epi16(1);
    for (int64_t round = 0; round < rounds; ++round) {
        __m256i p0, p1, p2, p3;
        asm volatile("vpxor %8, %9, %4\n\tvpxor %8, %9, %5\n\t"
                     "vpxor %8, %9, %6\n\tvpxor %8, %9, %7\n\t"
                     "vpmaddubsw %4, %10, %4\n\tvpmaddubsw %5, %10, %5\n\t"
                     "vpmaddubsw %6, %10, %6\n\tvpmaddubsw %7, %10, %7\n\t"
                     "vpmaddwd %11, %4, %4\n\tvpmaddwd %11, %5, %5\n\t"
                     "vpmaddwd %11, %6, %6\n\tvpmaddwd %11, %7, %7\n\t"
                     "vpaddd %4, %0, %0\n\tvpaddd %5, %1, %1\n\t"
                     "vpaddd %6, %2, %2\n\tvpaddd %7, %3, %3"
                     : "+x"(sums[0]), "+x"(sums[1]), "+x"(sums[2]), "+x"(sums[3]), "=&x"(p0),
                       "=&x"(p1), "=&x"(p2), "=&x"(p3)
                     : "x"(w), "x"(flip), "x"(size), "x"(ones));
    }
}

// Unsigned x signed: activations are offset by 128 and the weights' sums taken off once per row,
// so every instruction is 32 useful products.
__attribute__((target("avx512f,avx512vnni"))) void int8_avx512_vnni(const unsigned char *, int64_t,
                                                                    int64_t rounds) {
    __m512i sums[kChains] = {};
    const __m512i a = _mm512_set1_epi8(3), b = _mm512_set1_epi8(-5);
    for (int64_t round = 0; round < rounds; ++round) {
        for (__m512i &sum : sums) {
            asm volatile("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
        }
    }
}

__attribute__((target("avx2,fma"))) void fp32_avx2(const unsigned char *, int64_t,
                                                   int64_t rounds) {
    __m256 sums[kChains] = {};
    const __m256 a = _mm256_set1_ps(1.0f), b = _mm256_set1_ps(0.5f);
    for (int64_t round = 0; round < rounds; ++round) {
        for (__m256 &sum : sums) {
            asm volatile("vfmadd231ps %2, %1, %0" : "+x"(sum) : "x"(a), "x"(b));
        }
    }
}

__attribute__((target("avx512f"))) void fp32_avx512(const unsigned char *, int64_t,
                                                    int64_t rounds) {
    __m512 sums[kChains] = {};
    const __m512 a = _mm512_set1_ps(1.0f), b = _mm512_set1_ps(0.5f);
    for (int64_t round = 0; round < rounds; ++round) {
        for (__m512 &sum : sums) {
            asm volatile("vfmadd231ps %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
        }
    }
}

__attribute__((target("avx2"))) void read_avx2(const unsigned char *buffer, int64_t bytes,
                                               int64_t rounds) {
    for (int64_t round = 0; round < rounds; ++round) {
        for (int64_t at = 0; at < bytes; at += 4 * kLineBytes) {
            const __m256i *line = reinterpret_cast<const __m256i *>(buffer + at);
            for (int i = 0; i < 8; ++i) {
                const __m256i value = _mm256_load_si256(line + i);
                asm volatile("" : : "x"(value));
            }
        }
    }
}

__attribute__((target("avx512f"))) void read_avx512(const unsigned char *buffer, int64_t bytes,
                                                    int64_t rounds) {
    for (int64_t round = 0; round < rounds; ++round) {
        for (int64_t at = 0; at < bytes; at += 8 * kLineBytes) {
            const unsigned char *line = buffer + at;
            for (int i = 0; i < 8; ++i) {
                const __m512i value = _mm512_load_si512(line + i * kLineBytes);
                asm volatile("" : : "v"(value));
            }
        }
    }
}

#ifdef MOE_KNOWS_AMX

constexpr Feature kAvxVnni{"AVX-VNNI", 1, 0, 4};
constexpr Feature kAmxInt8{"AMX-INT8", 0, 3, 25};
constexpr uint64_t kTileState = 0x60000;

bool has_avx_vnni(char *reason, size_t size) { return has(kAvxVnni, kYmmState, reason, size); }

bool has_amx(char *reason, size_t size) {
    if (!has(kAmxInt8, kTileState, reason, size)) {
        return false;
    }
    const int refusal = request_tiles();
    if (refusal != 0) {
        std::snprintf(reason, size, MOE_TILE_REQUEST ": %s", std::strerror(refusal));
        return false;
    }
    return true;
}

__attribute__((target("avx2"))) void int8_avx_vnni(const unsigned char *, int64_t,
                                                   int64_t rounds) {
    __m256i sums[kChains] = {};
    const __m256i a = _mm256_set1_epi8(3), b = _mm256_set1_epi8(-5);
    for (int64_t round = 0; round < rounds; ++round) {
        for (__m256i &sum : sums) {
            asm volatile("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sum) : "x"(a), "x"(b));
        }
    }
}

// Palette 1; eight tiles of 16 rows x 64 bytes. Source: Intel SDM volume 1, chapter 18.
struct alignas(64) TileConfig {
    uint8_t palette = 1;
    uint8_t start_row = 0;
    uint8_t reserved[14] = {};
    uint16_t column_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
    uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(TileConfig) == 64, "the instruction reads 64 bytes");

constexpr int64_t kTileMacs = 16 * 16 * 64;
constexpr int kTileChains = 6;

void int8_amx(const unsigned char *, int64_t, int64_t rounds) {
    const TileConfig config;
    alignas(64) int8_t operand[16 * 64];
    std::memset(operand, 3, sizeof(operand));
    const int64_t stride = 64;
    asm volatile("ldtilecfg %0" : : "m"(config));
    asm volatile("tileloadd (%0,%1,1), %%tmm6\n\t"
                 "tileloadd (%0,%1,1), %%tmm7\n\t"
                 "tilezero %%tmm0\n\ttilezero %%tmm1\n\ttilezero %%tmm2\n\t"
                 "tilezero %%tmm3\n\ttilezero %%tmm4\n\ttilezero %%tmm5"
                 :
                 : "r"(operand), "r"(stride)
                 : "memory");
    for (int64_t round = 0; round < rounds; ++round) {
        asm volatile("tdpbssd %%tmm7, %%tmm6, %%tmm0\n\t"
                     "tdpbssd %%tmm7, %%tmm6, %%tmm1\n\t"
                     "tdpbssd %%tmm7, %%tmm6, %%tmm2\n\t"
                     "tdpbssd %%tmm7, %%tmm6, %%tmm3\n\t"
                     "tdpbssd %%tmm7, %%tmm6, %%tmm4\n\t"
                     "tdpbssd %%tmm7, %%tmm6, %%tmm5"
                     :
                     :
                     : "memory");
    }
    asm volatile("tilerelease" : : : "memory");
}

#endif

const Probe kProbes[] = {
    {"int8_avx2_words", Unit::kInt8Macs, kChains * 16, has_avx2, int8_avx2_words},
    {"int8_avx2_bytes", Unit::kInt8Macs, kByteChains * 32, has_avx2, int8_avx2_bytes},
    {"int8_avx512_vnni", Unit::kInt8Macs, kChains * 64, has_avx512_vnni, int8_avx512_vnni},
    {"fp32_avx2", Unit::kFp32Macs, kChains * 8, has_avx2, fp32_avx2},
    {"fp32_avx512", Unit::kFp32Macs, kChains * 16, has_avx512, fp32_avx512},
    {"read_avx2", Unit::kBytesRead, 0, has_avx2, read_avx2},
    {"read_avx512", Unit::kBytesRead, 0, has_avx512, read_avx512},
#ifdef MOE_KNOWS_AMX
    {"int8_avx_vnni", Unit::kInt8Macs, kChains * 32, has_avx_vnni, int8_avx_vnni},
    {"int8_amx_int8", Unit::kInt8Macs, kTileChains * kTileMacs, has_amx, int8_amx},
#endif
};

} // namespace

ProbeList x86_probes() {
    return {kProbes, static_cast<int32_t>(sizeof(kProbes) / sizeof(kProbes[0]))};
}

} // namespace moe::probes

#else

namespace moe::probes {
ProbeList x86_probes() { return {nullptr, 0}; }
} // namespace moe::probes

#endif
