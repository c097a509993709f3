// What the choice of experts needs of a row of scores.
#include "rows__portable.h"

#include <math.h>

// Relative error below (n / 32 + 8) * 2^-24: the sums of 32 lanes, then theirs.
extern "C" float moe_f32_sum_squares__portable(size_t n, const float *v) {
    float lanes[32] = {};
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        for (size_t lane = 0; lane < 32; ++lane) {
            lanes[lane] += v[i + lane] * v[i + lane];
        }
    }
    for (size_t lane = 0; i < n; ++i, ++lane) {
        lanes[lane] += v[i] * v[i];
    }
    for (size_t width = 16; width > 0; width /= 2) {
        for (size_t lane = 0; lane < width; ++lane) {
            lanes[lane] += lanes[lane + width];
        }
    }
    return lanes[0];
}

extern "C" int moe_f32_sigmoid_scores__portable(size_t n, const float *z, const float *bias,
                                                float *affinity, float *score) {
    bool finite = true;
    for (size_t i = 0; i < n; ++i) {
        finite = finite && fabsf(z[i]) <= 0x1.fffffep+127f;
        affinity[i] = 1.0f / (1.0f + expf(-z[i]));
        score[i] = affinity[i] + bias[i];
    }
    return finite ? 1 : 0;
}

extern "C" size_t moe_f32_find_above__portable(size_t begin, size_t n, const float *score,
                                               float threshold) {
    for (size_t i = begin; i < n; ++i) {
        if (score[i] > threshold) {
            return i;
        }
    }
    return n;
}
