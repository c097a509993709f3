// Packs 16 channels of int8 weights into one panel, at prepare.
#include "rows__avx_vnni.h"
#include "../avx2/vectors__avx2.h"

extern "C" void moe_qs8_pack_16c4__avx_vnni(size_t k, const int8_t *const *channels, void *panel) {
    MOE_REQUIRE(k > 0);
    MOE_REQUIRE((uintptr_t)panel % 64 == 0);
    int32_t *correction = (int32_t *)panel;
    int8_t *packed = (int8_t *)panel + MOE_CORRECTION_BYTES;
    const size_t padded = moe_round_up(k, MOE_KR);
    for (size_t c = 0; c < MOE_NR; ++c) {
        uint32_t sum = 0;
        for (size_t i = 0; i < padded; ++i) {
            const int8_t w = channels[c] != NULL && i < k ? channels[c][i] : 0;
            packed[i / MOE_KR * (MOE_NR * MOE_KR) + c * MOE_KR + i % MOE_KR] = w;
            sum += (uint32_t)w;
        }
        correction[c] = (int32_t)(0u - 128u * sum);
    }
}
