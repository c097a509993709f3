// int32 products of the down matrix to fp32, a tile at a time.
#include "rows__portable.h"

extern "C" void moe_s32_f32_dequantize__portable(size_t mr, size_t n, const int32_t *acc,
                                                 size_t acc_stride, const float *scales,
                                                 const float *h_scale, size_t offset,
                                                 float *const *out) {
    for (size_t m = 0; m < mr; ++m) {
        for (size_t c = 0; c < n; ++c) {
            out[m][offset + c] =
                static_cast<float>(acc[m * acc_stride + c]) * (h_scale[m] * scales[offset + c]);
        }
    }
}
