// The operator's fp32 steps on rows and tiles, in the order that moe_ep.h fixes.
#include "rows.h"

#include <algorithm>

#include "moe_ep.h"
#include "scalars.h"

namespace moe {
namespace ep {
namespace {

constexpr uint32_t kInfinity = 0x7f800000;
constexpr std::size_t kSumBlock = 512; // channels of a weighted sum at once: stays in L1

// Whether a row with the largest magnitude a is to become zeros: reciprocal is 127 / a or 1 / a.
bool vanishes(float a, float reciprocal) { return a == 0.0f || bits_of(reciprocal) == kInfinity; }

template <class Type>
uint32_t load_row(std::size_t h, const uint16_t *x, const float *smooth, float *v) {
    uint32_t largest = 0;
    if (smooth == nullptr) {
        for (std::size_t i = 0; i < h; ++i) {
            v[i] = Type::load(x[i]);
            largest = std::max(largest, bits_of(v[i]) & kMagnitude);
        }
    } else {
        for (std::size_t i = 0; i < h; ++i) {
            v[i] = Type::load(x[i]) * smooth[i];
            largest = std::max(largest, bits_of(v[i]) & kMagnitude);
        }
    }
    return largest;
}

// Rows by themselves: as loops without overlap they are vectorized without a check before each.
template <class Type>
inline void dequantize_row(std::size_t n, const int32_t *__restrict acc,
                           const float *__restrict scale, float s2, uint16_t *__restrict out) {
    for (std::size_t c = 0; c < n; ++c) {
        out[c] = Type::store((static_cast<float>(acc[c]) * scale[c]) * s2);
    }
}

inline void swiglu_row(std::size_t n, const int32_t *__restrict gate, const int32_t *__restrict up,
                       const float *__restrict gate_scale, const float *__restrict up_scale,
                       float x_scale, float *__restrict z) {
    for (std::size_t c = 0; c < n; ++c) {
        const float g = (static_cast<float>(gate[c]) * gate_scale[c]) * x_scale;
        const float u = (static_cast<float>(up[c]) * up_scale[c]) * x_scale;
        z[c] = (g / (1.0f + exp_f32(-g))) * u;
    }
}

template <class Type>
void dequantize(std::size_t mr, std::size_t n, const int32_t *acc, std::size_t acc_stride,
                const float *scale, const float *s2, uint8_t *const *out) {
    for (std::size_t m = 0; m < mr; ++m) {
        dequantize_row<Type>(n, acc + m * acc_stride, scale, s2[m],
                             reinterpret_cast<uint16_t *>(out[m]));
    }
}

// sum += row * scale. Apart from its caller: gcc would join two rows' loops there, and vectorize none.
template <class Type>
__attribute__((noinline)) void add_row(std::size_t n, const uint16_t *row, float scale, float *sum) {
    for (std::size_t i = 0; i < n; ++i) {
        sum[i] = sum[i] + Type::load(row[i]) * scale;
    }
}

template <class Type>
void sum_rows(std::size_t h, std::size_t count, const uint8_t *const *rows, const float *scales,
              uint16_t *out) {
    for (std::size_t begin = 0; begin < h; begin += kSumBlock) {
        const std::size_t n = std::min(kSumBlock, h - begin);
        float sum[kSumBlock] = {};
        for (std::size_t j = 0; j < count; ++j) {
            add_row<Type>(n, reinterpret_cast<const uint16_t *>(rows[j]) + begin, scales[j], sum);
        }
        for (std::size_t i = 0; i < n; ++i) {
            out[begin + i] = Type::store(sum[i]);
        }
    }
}

} // namespace

float quantize_x(std::size_t h, int32_t dtype, const void *x, const float *smooth, float *v,
                 int8_t *q) {
    const uint16_t *values = static_cast<const uint16_t *>(x);
    const uint32_t bits = dtype == MOE_EP_BF16 ? load_row<Bf16>(h, values, smooth, v)
                                               : load_row<Fp16>(h, values, smooth, v);
    const float largest = float_of(bits);
    const float factor = 127.0f / largest;
    if (vanishes(largest, factor)) {
        std::fill(q, q + h, int8_t{0});
        return 0.0f;
    }
    for (std::size_t i = 0; i < h; ++i) {
        q[i] = to_int8(v[i] * factor);
    }
    return 1.0f / factor;
}

void swiglu_tile(std::size_t mr, std::size_t n, const int32_t *gate, const int32_t *up,
                 std::size_t acc_stride, const float *gate_scale, const float *up_scale,
                 const float *x_scale, float *z, std::size_t z_stride) {
    for (std::size_t m = 0; m < mr; ++m) {
        swiglu_row(n, gate + m * acc_stride, up + m * acc_stride, gate_scale, up_scale, x_scale[m],
                   z + m * z_stride);
    }
}

float scale_z(std::size_t m, float *z) {
    uint32_t bits = 0;
    for (std::size_t i = 0; i < m; ++i) {
        bits = std::max(bits, bits_of(z[i]) & kMagnitude);
    }
    const float largest = float_of(bits);
    const float factor = 1.0f / largest;
    if (vanishes(largest, factor)) {
        std::fill(z, z + m, 0.0f);
        return 0.0f;
    }
    for (std::size_t i = 0; i < m; ++i) {
        z[i] = (z[i] * 127.0f) * factor;
    }
    return largest * (1.0f / 127.0f);
}

void round_to_int8(std::size_t n, const float *v, int8_t *q) {
    for (std::size_t i = 0; i < n; ++i) {
        q[i] = to_int8(v[i]);
    }
}

void widen(std::size_t n, const int8_t *q, float *v) {
    for (std::size_t i = 0; i < n; ++i) {
        v[i] = static_cast<float>(q[i]);
    }
}

void dequantize_tile(std::size_t mr, std::size_t n, const int32_t *acc, std::size_t acc_stride,
                     const float *scale, const float *s2, int32_t dtype, uint8_t *const *out) {
    if (dtype == MOE_EP_BF16) {
        dequantize<Bf16>(mr, n, acc, acc_stride, scale, s2, out);
    } else {
        dequantize<Fp16>(mr, n, acc, acc_stride, scale, s2, out);
    }
}

void weighted_sum(std::size_t h, int32_t dtype, std::size_t count, const uint8_t *const *rows,
                  const float *scales, void *out) {
    uint16_t *values = static_cast<uint16_t *>(out);
    if (dtype == MOE_EP_BF16) {
        sum_rows<Bf16>(h, count, rows, scales, values);
    } else {
        sum_rows<Fp16>(h, count, rows, scales, values);
    }
}

} // namespace ep
} // namespace moe

extern "C" void moe_ep_exp(int64_t n, const float *v, float *out) {
    for (int64_t i = 0; i < n; ++i) {
        out[i] = moe::ep::exp_f32(v[i]);
    }
}

extern "C" int32_t moe_ep_to_f32(int32_t dtype, int64_t n, const void *values, float *out) {
    const uint16_t *words = static_cast<const uint16_t *>(values);
    if (dtype != MOE_EP_BF16 && dtype != MOE_EP_FP16) {
        return MOE_BAD_ARGUMENT;
    }
    for (int64_t i = 0; i < n; ++i) {
        out[i] = dtype == MOE_EP_BF16 ? moe::ep::Bf16::load(words[i]) : moe::ep::Fp16::load(words[i]);
    }
    return MOE_OK;
}

extern "C" int32_t moe_ep_from_f32(int32_t dtype, int64_t n, const float *values, void *out) {
    uint16_t *words = static_cast<uint16_t *>(out);
    if (dtype != MOE_EP_BF16 && dtype != MOE_EP_FP16) {
        return MOE_BAD_ARGUMENT;
    }
    for (int64_t i = 0; i < n; ++i) {
        words[i] = dtype == MOE_EP_BF16 ? moe::ep::Bf16::store(values[i])
                                        : moe::ep::Fp16::store(values[i]);
    }
    return MOE_OK;
}
