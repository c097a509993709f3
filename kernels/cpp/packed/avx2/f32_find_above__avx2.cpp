// The next value above a threshold.
#include "rows__avx2.h"
#include "vectors__avx2.h"

extern "C" size_t moe_f32_find_above__avx2(size_t begin, size_t n, const float *score,
                                           float threshold) {
    const __m256 t = _mm256_set1_ps(threshold);
    for (size_t i = begin; i < n; i += 8) {
        const __m256 above = _mm256_cmp_ps(load_f32(score + i, n - i), t, _CMP_GT_OQ);
        unsigned hits = (unsigned)_mm256_movemask_ps(above);
        if (n - i < 8) {
            hits &= (1u << (n - i)) - 1u;
        }
        if (hits != 0) {
            return i + (size_t)__builtin_ctz(hits);
        }
    }
    return n;
}
