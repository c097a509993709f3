// Probes that need only the architecture's baseline: on x86-64 that includes SSE2, on aarch64 NEON.
#include "support/probes.h"

#include <atomic>

#if defined(__SSE2__)
#include <emmintrin.h>
#elif defined(__ARM_NEON) && defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace moe::probes {
namespace {

bool always(char *, size_t) { return true; }

constexpr int kChains = 8;

// A linear congruential step modulo a power of two visits every line once before it returns, when
// the multiplier is 1 modulo 4 and the increment odd (Hull and Dobell, SIAM Review 4(3), 1962).
constexpr uint64_t kMultiplier = 0x9E3779B97F4A7C15u, kIncrement = 0xBF58476D1CE4E5B9u;

// The lines of a set that are linked: the largest power of two.
uint64_t linked_lines(int64_t bytes) {
    uint64_t lines = 1;
    while (static_cast<int64_t>(lines * 2) * kLineBytes <= bytes) {
        lines *= 2;
    }
    return lines;
}

#if defined(__SSE2__)

constexpr int64_t kIntRound = kChains * 8;

// Widened to int16 beforehand, as packed weights would be: eight products an instruction.
void int8_macs(const unsigned char *, int64_t, int64_t rounds) {
    __m128i sums[kChains] = {};
    const __m128i a = _mm_set1_epi16(-3), b = _mm_set1_epi16(5);
    for (int64_t round = 0; round < rounds; ++round) {
        for (__m128i &sum : sums) {
            __m128i products;
            asm volatile("movdqa %2, %1\n\tpmaddwd %3, %1\n\tpaddd %1, %0"
                         : "+x"(sum), "=&x"(products)
                         : "x"(a), "x"(b));
        }
    }
}

constexpr int64_t kFloatRound = kChains * 4;

void fp32_macs(const unsigned char *, int64_t, int64_t rounds) {
    __m128 sums[kChains] = {};
    const __m128 a = _mm_set1_ps(1.0f), b = _mm_set1_ps(0.5f);
    for (int64_t round = 0; round < rounds; ++round) {
        for (__m128 &sum : sums) {
            __m128 products;
            asm volatile("movaps %2, %1\n\tmulps %3, %1\n\taddps %1, %0"
                         : "+x"(sum), "=&x"(products)
                         : "x"(a), "x"(b));
        }
    }
}

#elif defined(__ARM_NEON) && defined(__aarch64__)

constexpr int64_t kIntRound = kChains * 16;

// Two products of one activation of at most 127 fit into int16: multiply, multiply-add, widen.
void int8_macs(const unsigned char *, int64_t, int64_t rounds) {
    int32x4_t sums[kChains] = {};
    int8x16_t a = vdupq_n_s8(-3), b = vdupq_n_s8(5);
    for (int64_t round = 0; round < rounds; ++round) {
        for (int32x4_t &sum : sums) {
            asm volatile("" : "+w"(a), "+w"(b));
            int16x8_t pair = vmull_s8(vget_low_s8(a), vget_low_s8(b));
            pair = vmlal_high_s8(pair, a, b);
            sum = vpadalq_s16(sum, pair);
        }
    }
    for (int32x4_t &sum : sums) {
        asm volatile("" : : "w"(sum));
    }
}

constexpr int64_t kFloatRound = kChains * 4;

void fp32_macs(const unsigned char *, int64_t, int64_t rounds) {
    float32x4_t sums[kChains] = {};
    float32x4_t a = vdupq_n_f32(1.0f), b = vdupq_n_f32(0.5f);
    for (int64_t round = 0; round < rounds; ++round) {
        for (float32x4_t &sum : sums) {
            asm volatile("" : "+w"(a), "+w"(b));
            sum = vfmaq_f32(sum, a, b);
        }
    }
    for (float32x4_t &sum : sums) {
        asm volatile("" : : "w"(sum));
    }
}

#else

constexpr int64_t kIntRound = kChains;

void int8_macs(const unsigned char *, int64_t, int64_t rounds) {
    int32_t sums[kChains] = {};
    int32_t a = -3, b = 5;
    for (int64_t round = 0; round < rounds; ++round) {
        for (int32_t &sum : sums) {
            asm volatile("" : "+r"(a), "+r"(b));
            sum = static_cast<int32_t>(static_cast<uint32_t>(sum) + static_cast<uint32_t>(a * b));
        }
    }
    for (int32_t &sum : sums) {
        asm volatile("" : : "r"(sum));
    }
}

constexpr int64_t kFloatRound = kChains;

void fp32_macs(const unsigned char *, int64_t, int64_t rounds) {
    volatile float seed_a = 1.0f, seed_b = 0.5f;
    float sums[kChains] = {};
    for (int64_t round = 0; round < rounds; ++round) {
        const float a = seed_a, b = seed_b;
        for (float &sum : sums) {
            sum += a * b;
        }
    }
    volatile float sink = 0;
    for (float &sum : sums) {
        sink = sum;
    }
    (void)sink;
}

#endif

// Eight-byte loads, or the baseline's vectors; every load's value is demanded, nothing is computed.
void read_bytes(const unsigned char *buffer, int64_t bytes, int64_t rounds) {
    for (int64_t round = 0; round < rounds; ++round) {
        for (int64_t at = 0; at < bytes; at += 2 * kLineBytes) {
            const unsigned char *line = buffer + at;
#if defined(__SSE2__)
            for (int i = 0; i < 8; ++i) {
                const __m128i value = _mm_load_si128(reinterpret_cast<const __m128i *>(line) + i);
                asm volatile("" : : "x"(value));
            }
#elif defined(__ARM_NEON) && defined(__aarch64__)
            for (int i = 0; i < 8; ++i) {
                const uint8x16_t value = vld1q_u8(line + 16 * i);
                asm volatile("" : : "w"(value));
            }
#else
            for (int i = 0; i < 16; ++i) {
                const uint64_t value = reinterpret_cast<const uint64_t *>(line)[i];
                asm volatile("" : : "r"(value));
            }
#endif
        }
    }
}

constexpr int64_t kLoadsPerRound = 1024;

// Starts somewhere else in the cycle each time, so that a part of a large set is not walked again
// and again until it lies in a nearer cache.
void chase_lines(const unsigned char *buffer, int64_t bytes, int64_t rounds) {
    static std::atomic<uint64_t> calls{0};
    const uint64_t lines = linked_lines(bytes);
    const uint64_t start = calls.fetch_add(1, std::memory_order_relaxed) * kMultiplier % lines;
    const void *at = buffer + static_cast<int64_t>(start) * kLineBytes;
    for (int64_t i = 0; i < rounds * kLoadsPerRound; ++i) {
        at = *static_cast<const void *const *>(at);
        asm volatile("" : "+r"(at));
    }
}

const Probe kProbes[] = {
    {"int8_portable", Unit::kInt8Macs, kIntRound, always, int8_macs},
    {"fp32_portable", Unit::kFp32Macs, kFloatRound, always, fp32_macs},
    {"read_portable", Unit::kBytesRead, 0, always, read_bytes},
    {"chase", Unit::kLoads, kLoadsPerRound, always, chase_lines},
};

} // namespace

ProbeList portable_probes() {
    return {kProbes, static_cast<int32_t>(sizeof(kProbes) / sizeof(kProbes[0]))};
}

void link_lines(unsigned char *buffer, int64_t bytes) {
    const uint64_t lines = linked_lines(bytes);
    uint64_t line = 0;
    for (uint64_t i = 0; i < lines; ++i) {
        const uint64_t next = (kMultiplier * line + kIncrement) % lines;
        *reinterpret_cast<void **>(buffer + static_cast<int64_t>(line) * kLineBytes) =
            buffer + static_cast<int64_t>(next) * kLineBytes;
        line = next;
    }
}

} // namespace moe::probes
