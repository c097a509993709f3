// Activation quantization to int8 with one scale per row, in fp32.
//
// a = max|v|; scale = a / 127; q = rint(v * (127 / a)), half to even, so |q| <= 127.
// A row with a < 2^-100 (zeros, denormals) has scale 0 and q = 0.
#pragma once

#include <cmath>
#include <cstdint>

namespace moe {

// Nearest integer of |v| < 2^22, half to even: adding 1.5 * 2^23 leaves no bits for a fraction.
// Exact in the default rounding mode, and every compiler vectorizes it (rint needs SSE4.1).
static inline float round_half_even(float v) {
    const float shift = 12582912.0f;
    return (v + shift) - shift;
}

// values: (size) f32; quantized: (size) int8, or a wider integer. Returns the scale.
template <class Integer>
static inline float quantize_row(const float *values, int32_t size, Integer *quantized) {
    float largest = 0.0f;
    for (int32_t i = 0; i < size; ++i) {
        const float magnitude = std::fabs(values[i]);
        largest = magnitude > largest ? magnitude : largest;
    }
    const float smallest_normal_row = 0x1p-100f;
    if (largest < smallest_normal_row) {
        for (int32_t i = 0; i < size; ++i) {
            quantized[i] = 0;
        }
        return 0.0f;
    }
    const float to_int8 = 127.0f / largest;
    for (int32_t i = 0; i < size; ++i) {
        // The bounds change no finite value; they keep the conversion defined after an overflow
        // of h to infinity, where the infinite scale already marks the row.
        float q = round_half_even(values[i] * to_int8);
        q = q < 127.0f ? q : 127.0f;
        q = q > -127.0f ? q : -127.0f;
        quantized[i] = static_cast<Integer>(static_cast<int32_t>(q));
    }
    return largest / 127.0f;
}

} // namespace moe
