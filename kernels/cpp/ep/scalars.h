// The scalar kernels of the operator: the one exponential, and bf16 and fp16 as fp32 and back.
//
// Plain C++ without branches, so that compilers vectorize loops over them; every operation is an IEEE
// operation that is written down, none is contracted, so that all paths compute the same bits. Only the
// default rounding mode is assumed.
#pragma once

#include <cstdint>
#include <cstring>

namespace moe {
namespace ep {
namespace {

inline uint32_t bits_of(float v) {
    uint32_t bits;
    std::memcpy(&bits, &v, sizeof bits);
    return bits;
}

inline float float_of(uint32_t bits) {
    float v;
    std::memcpy(&v, &bits, sizeof v);
    return v;
}

constexpr uint32_t kMagnitude = 0x7fffffff;
constexpr float kRoundShift = 12582912.0f; // 1.5 * 2^23: a sum with it has no bits for a fraction

// e^v with an error below 2 ulp for -87.336 <= v <= 88.72; infinite above, e^-87.336 below.
//
// v = n ln 2 + r with |r| <= ln 2 / 2. The high part of ln 2 has 17 bits, n at most 7, so that their
// product is exact. The polynomial is that of ../packed/avx2/exp__avx2.h.
inline float exp_f32(float v) {
    v = v < 88.8f ? v : 88.8f;
    v = v > -87.336f ? v : -87.336f;
    const float shifted = v * 0x1.715476p+0f + kRoundShift;
    const float n = shifted - kRoundShift;
    const int32_t exponent = static_cast<int32_t>(bits_of(shifted) - bits_of(kRoundShift));
    float r = v - n * 0x1.62e4p-1f;
    r = r - n * 0x1.7f7d1cp-20f;
    float p = 0x1.6a23d0p-10f;
    p = p * r + 0x1.123a20p-7f;
    p = p * r + 0x1.5558f2p-5f;
    p = p * r + 0x1.555492p-3f;
    p = p * r + 0x1.fffffcp-2f;
    p = (r * r) * p + r;
    p = p + 1.0f;
    // 2^n in two factors: n may be 128.
    const int32_t half = exponent >> 1;
    const float first = float_of(static_cast<uint32_t>(half + 127) << 23);
    const float second = float_of(static_cast<uint32_t>(exponent - half + 127) << 23);
    return (p * first) * second;
}

// Nearest integer of |v| <= 127, half to even; larger magnitudes and infinities become +-127.
inline int8_t to_int8(float v) {
    v = v < 127.0f ? v : 127.0f;
    v = v > -127.0f ? v : -127.0f;
    return static_cast<int8_t>(bits_of(v + kRoundShift) & 0xff); // two's complement of the integer
}

struct Bf16 {
    static float load(uint16_t v) { return float_of(static_cast<uint32_t>(v) << 16); }
    static uint16_t store(float v) {
        const uint32_t bits = bits_of(v);
        const uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
        const uint32_t nan = (bits >> 16) | 0x40;
        return static_cast<uint16_t>((bits & kMagnitude) > 0x7f800000 ? nan : rounded);
    }
};

struct Fp16 {
    static float load(uint16_t v) {
        const uint32_t magnitude = static_cast<uint32_t>(v & 0x7fff) << 13;
        // The exponent's bias: exact for denormals too, since they come out normal.
        const uint32_t finite = bits_of(float_of(magnitude) * 0x1p112f);
        const uint32_t special = magnitude | 0x7f800000;
        const uint32_t sign = static_cast<uint32_t>(v & 0x8000) << 16;
        return float_of(sign | (magnitude >= 0x0f800000 ? special : finite));
    }
    static uint16_t store(float v) {
        const uint32_t bits = bits_of(v);
        const uint32_t magnitude = bits & kMagnitude;
        // Below 2^-14 the sum with 0.5 rounds to multiples of 2^-24, the steps of fp16's denormals.
        const uint32_t small = bits_of(float_of(magnitude) + 0.5f) - bits_of(0.5f);
        const uint32_t odd = (magnitude >> 13) & 1;
        const uint32_t normal = (magnitude - (112u << 23) + 0xfff + odd) >> 13;
        const uint32_t huge = magnitude > 0x7f800000 ? 0x7e00 : 0x7c00;
        const uint32_t finite = magnitude < (113u << 23) ? small : normal;
        const uint32_t rounded = magnitude >= (143u << 23) ? huge : finite;
        return static_cast<uint16_t>(((bits >> 16) & 0x8000) | rounded);
    }
};

} // namespace
} // namespace ep
} // namespace moe
