// h = SiLU(g) * u from the accumulators of dual panels (8 gate channels, then 8 of up).
#include "rows__portable.h"

#include <math.h>

extern "C" float moe_s32_swiglu_16__portable(size_t panels, const int32_t *acc,
                                             const float *scales, float x_scale, float *h) {
    constexpr size_t half = MOE_PORTABLE_NR / 2;
    float largest = 0.0f;
    for (size_t p = 0; p < panels; ++p) {
        for (size_t c = 0; c < half; ++c) {
            const float g = static_cast<float>(acc[c]) * (x_scale * scales[c]);
            const float u = static_cast<float>(acc[half + c]) * (x_scale * scales[half + c]);
            h[c] = (g / (1.0f + expf(-g))) * u;
            const float magnitude = fabsf(h[c]);
            largest = magnitude > largest ? magnitude : largest;
        }
        acc += MOE_PORTABLE_NR;
        scales += MOE_PORTABLE_NR;
        h += half;
    }
    return largest;
}
