// One activation row: its largest magnitude, and its values as int8 in int16 (see quantize.h).
#include "rows__portable.h"

#include <math.h>

#include "../../quantize.h"

extern "C" float moe_f32_absmax__portable(size_t n, const float *v) {
    float largest = 0.0f;
    for (size_t i = 0; i < n; ++i) {
        const float magnitude = fabsf(v[i]);
        largest = magnitude > largest ? magnitude : largest;
    }
    return largest;
}

extern "C" float moe_f32_qs16_quantize__portable(size_t n, const float *v, float largest,
                                                 void *row) {
    int16_t *quantized = static_cast<int16_t *>(row);
    if (largest < 0x1p-100f) {
        for (size_t i = 0; i < n; ++i) {
            quantized[i] = 0;
        }
        return 0.0f;
    }
    const float factor = 127.0f / largest;
    for (size_t i = 0; i < n; ++i) {
        float q = moe::round_half_even(v[i] * factor);
        q = q < 127.0f ? q : 127.0f;
        q = q > -127.0f ? q : -127.0f;
        quantized[i] = static_cast<int16_t>(static_cast<int32_t>(q));
    }
    return largest / 127.0f;
}
