// Packs 16 channels of int8 weights into one panel, at prepare.
#include "rows__avx2.h"
#include "vectors__avx2.h"

extern "C" void moe_qs8_pack_16c4__avx2(size_t k, const int8_t *const *channels, void *panel) {
    MOE_REQUIRE(k > 0);
    MOE_REQUIRE((uintptr_t)panel % 64 == 0);
    int8_t *packed = (int8_t *)panel;
    const size_t padded = moe_round_up(k, MOE_KR);
    for (size_t c = 0; c < MOE_NR; ++c) {
        for (size_t i = 0; i < padded; ++i) {
            const int8_t w = channels[c] != NULL && i < k ? channels[c][i] : 0;
            packed[i / MOE_KR * (MOE_NR * MOE_KR) + c * MOE_KR + i % MOE_KR] = w;
        }
    }
}
