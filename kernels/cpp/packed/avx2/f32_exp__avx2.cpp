// exp__avx2.h over an array: what the tests of its error bound call.
#include "exp__avx2.h"
#include "rows__avx2.h"
#include "vectors__avx2.h"

extern "C" void moe_f32_exp__avx2(size_t n, const float *v, float *out) {
    for (size_t i = 0; i < n; i += 8) {
        store_f32(out + i, n - i, exp_f32x8(load_f32(v + i, n - i)));
    }
}
