// The activation between the two halves of an expert.
#pragma once

#include <cmath>
#include <cstdint>

#include "step.h"

namespace moe {

// h = SiLU(g) * u for one row. acc_*: (H) int32; *_scale: (H) f32; h: (H) f32.
MOE_STEP static void swiglu_row(const int32_t *acc_gate, const int32_t *acc_up,
                                const float *gate_scale, const float *up_scale, float x_scale,
                                int32_t size, float *h) {
    for (int32_t f = 0; f < size; ++f) {
        const float g = static_cast<float>(acc_gate[f]) * (x_scale * gate_scale[f]);
        const float u = static_cast<float>(acc_up[f]) * (x_scale * up_scale[f]);
        h[f] = (g / (1.0f + expf(-g))) * u;
    }
}

} // namespace moe
