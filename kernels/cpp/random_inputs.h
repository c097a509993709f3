// Seeded weights and tokens, the same bits as kernels/inputs.py makes.
//
// Element i of a stream is a hash of (seed, stream, i); the mixing constants are the SplitMix64
// finalizer's (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
#pragma once

#include <cmath>
#include <cstdint>

namespace moe {

enum class Stream : uint64_t {
    kRouter = 1,
    kBias = 2,
    kGate = 3,
    kUp = 4,
    kDown = 5,
    kGateScale = 6,
    kUpScale = 7,
    kDownScale = 8,
    kTokens = 9,
    kRowMagnitude = 10,
    kOutlier = 11,
};

constexpr uint64_t kGolden = 0x9E3779B97F4A7C15u;

static inline uint64_t mix_bits(uint64_t z) {
    z ^= z >> 30;
    z *= 0xBF58476D1CE4E5B9u;
    z ^= z >> 27;
    z *= 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

// Where a stream starts; random_bits(start, i) is its element i.
static inline uint64_t stream_start(uint64_t seed, Stream stream) {
    return mix_bits(seed * kGolden + static_cast<uint64_t>(stream) * 0xD1B54A32D192ED03u);
}

static inline uint64_t random_bits(uint64_t start, uint64_t i) {
    return mix_bits(start + (i + 1) * kGolden);
}

// Sum of four uniform 16-bit integers, centred: an exact integer, nearly normal.
static inline float centred_sum(uint64_t bits) {
    const auto piece = [bits](int shift) { return static_cast<int32_t>(bits >> shift & 0xFFFF); };
    return static_cast<float>(piece(0) + piece(16) + piece(32) + piece(48) - 131070);
}

static inline double sum_deviation() { return 65536.0 / std::sqrt(3.0); }

// Uniform in [0, 1), 24 bits.
static inline float unit_value(uint64_t bits) {
    return static_cast<float>(bits >> 40) * 0x1p-24f;
}

static inline void fill_normal(uint64_t seed, Stream stream, int64_t size, float factor,
                               float *values) {
    const uint64_t start = stream_start(seed, stream);
    for (int64_t i = 0; i < size; ++i) {
        values[i] = centred_sum(random_bits(start, static_cast<uint64_t>(i))) * factor;
    }
}

// router: (experts, d_model), so that outputs for unit tokens have a deviation of 0.25: affinities
// do not saturate, and with small biases tokens spread over nearly all experts.
static inline void fill_router(uint64_t seed, int64_t experts, int32_t d_model, float *router) {
    const double deviation = sum_deviation() * std::sqrt(static_cast<double>(d_model));
    fill_normal(seed, Stream::kRouter, experts * d_model, static_cast<float>(0.25 / deviation),
                router);
}

// The whole int8 range; byte j is byte j % 8, little end first, of element j / 8.
static inline void fill_int8(uint64_t seed, Stream stream, int64_t size, int8_t *values) {
    const uint64_t start = stream_start(seed, stream);
    for (int64_t i = 0; i < size; i += 8) {
        const uint64_t bits = random_bits(start, static_cast<uint64_t>(i) / 8);
        for (int64_t j = i; j < size && j < i + 8; ++j) {
            values[j] = static_cast<int8_t>(static_cast<uint8_t>(bits >> (8 * (j - i))));
        }
    }
}

static inline void fill_bias(uint64_t seed, int64_t size, float *values) {
    const uint64_t start = stream_start(seed, Stream::kBias);
    for (int64_t i = 0; i < size; ++i) {
        values[i] = (unit_value(random_bits(start, static_cast<uint64_t>(i))) - 0.5f) * 0.02f;
    }
}

// One scale per expert, chosen such that outputs are of the order of 1. 73.9 is the root mean
// square of the uniform int8 values.
static inline float random_scale(uint64_t seed, Stream stream, int64_t expert, int32_t fan_in) {
    const uint64_t bits = random_bits(stream_start(seed, stream), static_cast<uint64_t>(expert));
    const float base = static_cast<float>(1.0 / (73.9 * std::sqrt(static_cast<double>(fan_in))));
    return base * (0.75f + 0.5f * unit_value(bits));
}

// tokens: (n, d_model). Rows differ in magnitude by powers of two, one value in 256 is an outlier.
static inline void fill_tokens(uint64_t seed, int64_t n, int64_t d_model, float *tokens) {
    fill_normal(seed, Stream::kTokens, n * d_model, static_cast<float>(1.0 / sum_deviation()),
                tokens);
    const uint64_t rows = stream_start(seed, Stream::kRowMagnitude);
    const uint64_t outliers = stream_start(seed, Stream::kOutlier);
    for (int64_t t = 0; t < n; ++t) {
        const uint64_t power = random_bits(rows, static_cast<uint64_t>(t)) % 5;
        const float magnitude = std::ldexp(1.0f, static_cast<int>(power) - 2);
        for (int64_t i = t * d_model; i < (t + 1) * d_model; ++i) {
            tokens[i] *= magnitude;
            if (random_bits(outliers, static_cast<uint64_t>(i)) % 256 == 0) {
                tokens[i] *= 8.0f;
            }
        }
    }
}

} // namespace moe
