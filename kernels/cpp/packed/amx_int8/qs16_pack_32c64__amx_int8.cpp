// Packs 32 router rows of int16 into one panel of bytes, at prepare; zeros where padded.
#include "candidates__amx_int8.h"
#include "tiles__amx_int8.h"

extern "C" void moe_qs16_pack_32c64__amx_int8(size_t k, const int16_t *const *channels,
                                              int16_t *panel) {
    MOE_REQUIRE(k > 0);
    uint8_t *bytes = (uint8_t *)panel;
    const size_t padded = moe_vnni_round_up(k, MOE_AMX_KR);
    for (size_t c = 0; c < MOE_VNNI_NR; ++c) {
        for (size_t i = 0; i < padded; ++i) {
            const bool inside = channels[c] != NULL && i < k;
            const uint16_t q = inside ? (uint16_t)channels[c][i] : (uint16_t)0;
            const size_t block = c / 16 * (padded / MOE_AMX_KR) + i / MOE_AMX_KR;
            const size_t at = (i % MOE_AMX_KR / 4 * 16 + c % 16) * 4 + i % 4;
            uint8_t *tiles = bytes + block * 2 * 64 * MOE_AMX_TILE_ROWS;
            tiles[at] = (uint8_t)(q >> 8);
            tiles[64 * MOE_AMX_TILE_ROWS + at] = (uint8_t)q;
        }
    }
}
