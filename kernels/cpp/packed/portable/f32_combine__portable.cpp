// y = x + sum of gates[i] * parts[i], multiply then add, in the order given.
#include "rows__portable.h"

extern "C" void moe_f32_combine__portable(size_t n, const float *x, const float *const *parts,
                                          const float *gates, size_t count, float *y) {
    for (size_t i = 0; i < n; ++i) {
        y[i] = x == NULL ? 0.0f : x[i];
    }
    for (size_t p = 0; p < count; ++p) {
        const float *part = parts[p];
        const float gate = gates[p];
        for (size_t i = 0; i < n; ++i) {
            y[i] += gate * part[i];
        }
    }
}
