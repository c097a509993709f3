// Packs 16 channels of int8 weights into one panel of tiles, at prepare.
#include "rows__ime.h"

extern "C" void moe_qs8_pack_16c8__ime(size_t k, const int8_t *const *channels, void *panel) {
    int8_t *packed = static_cast<int8_t *>(panel);
    for (size_t block = 0; block < MOE_IME_BLOCKS; ++block) {
        for (size_t tile = 0; tile < moe_ime_tiles(k); ++tile) {
            for (size_t c = 0; c < MOE_IME_CHANNELS; ++c) {
                const int8_t *channel = channels[block * MOE_IME_CHANNELS + c];
                for (size_t i = tile * MOE_IME_KR; i < (tile + 1) * MOE_IME_KR; ++i) {
                    *packed++ = channel != NULL && i < k ? channel[i] : int8_t{0};
                }
            }
        }
    }
}
