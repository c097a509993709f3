// exp__avx512_vnni.h over an array: what the tests of its error bound call.
#include "exp__avx512_vnni.h"
#include "rows__avx512_vnni.h"
#include "vectors__avx512_vnni.h"

extern "C" void moe_f32_exp__avx512_vnni(size_t n, const float *v, float *out) {
    for (size_t i = 0; i < n; i += 16) {
        store_f32(out + i, n - i, exp_f32x16(load_f32(v + i, n - i)));
    }
}
