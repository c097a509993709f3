// Steps 1, 3, 4, 5 and 6 of moe_ep.h on rows and tiles: compiled once per path and called by the fused
// operator and by the small ops, so that both round alike.
#pragma once

#include <cstddef>
#include <cstdint>

namespace moe {
namespace ep {

constexpr std::size_t kElementBytes = 2; // bf16, fp16
constexpr std::size_t kScaleBytes = 4;

// Step 1 of one row. x: (h) of dtype; smooth: (h) or NULL; v: (h) scratch; q: (h). Returns s.
float quantize_x(std::size_t h, int32_t dtype, const void *x, const float *smooth, float *v,
                 int8_t *q);

// Step 3 for mr rows x n channels: z[row * z_stride + c] from gate[row * acc_stride + c] and up[...].
void swiglu_tile(std::size_t mr, std::size_t n, const int32_t *gate, const int32_t *up,
                 std::size_t acc_stride, const float *gate_scale, const float *up_scale,
                 const float *x_scale, float *z, std::size_t z_stride);

// Step 4 of one row, but for the conversion to int8: z (m) becomes (z * 127) * (1 / a), which to_int8 and
// the paths' quantize with a largest value of 127 round alike; zeros for a row that vanishes. Returns s2.
float scale_z(std::size_t m, float *z);

// q[i] = int8(rint(v[i])), |v| <= 127 but for overflows.
void round_to_int8(std::size_t n, const float *v, int8_t *q);
// v[i] = q[i]
void widen(std::size_t n, const int8_t *q, float *v);

// Step 5 for mr rows x n channels: out[row] + c <- cast((acc * scale[c]) * s2[row]).
void dequantize_tile(std::size_t mr, std::size_t n, const int32_t *acc, std::size_t acc_stride,
                     const float *scale, const float *s2, int32_t dtype, uint8_t *const *out);

// Step 6 of one row: out (h) from `count` rows, in their order; zeros for none.
void weighted_sum(std::size_t h, int32_t dtype, std::size_t count, const uint8_t *const *rows,
                  const float *scales, void *out);

} // namespace ep
} // namespace moe
