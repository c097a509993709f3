// Packs 32 channels of int8 weights into one panel, at prepare.
#include "rows__amx_int8.h"
#include "tiles__amx_int8.h"

extern "C" void moe_qs8_pack_32c64__amx_int8(size_t k, const int8_t *const *channels,
                                             void *panel) {
    MOE_REQUIRE(k > 0);
    MOE_REQUIRE((uintptr_t)panel % 64 == 0);
    int32_t *correction = (int32_t *)panel;
    int8_t *packed = (int8_t *)panel + MOE_VNNI_CORRECTION_BYTES;
    const size_t padded = moe_vnni_round_up(k, MOE_AMX_KR);
    for (size_t c = 0; c < MOE_VNNI_NR; ++c) {
        uint32_t sum = 0;
        for (size_t i = 0; i < padded; ++i) {
            const int8_t w = channels[c] != NULL && i < k ? channels[c][i] : (int8_t)0;
            packed[(i / MOE_VNNI_KR * MOE_VNNI_NR + c) * MOE_VNNI_KR + i % MOE_VNNI_KR] = w;
            sum += (uint32_t)w;
        }
        correction[c] = (int32_t)(0u - 128u * sum);
    }
}
