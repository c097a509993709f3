// Packs 16 channels of int8 weights into one panel, at prepare.
#include "rows__portable.h"

#include <string.h>

extern "C" void moe_qs8_pack_16__portable(size_t k, const int8_t *const *channels, void *panel) {
    int8_t *packed = static_cast<int8_t *>(panel);
    for (size_t c = 0; c < MOE_PORTABLE_NR; ++c) {
        if (channels[c] == NULL) {
            memset(packed + c * k, 0, k);
        } else {
            memcpy(packed + c * k, channels[c], k);
        }
    }
}
