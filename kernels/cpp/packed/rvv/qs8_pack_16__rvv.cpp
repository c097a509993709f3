// Packs 16 channels of int8 weights into one panel, at prepare.
#include "rows__rvv.h"

extern "C" void moe_qs8_pack_16__rvv(size_t k, const int8_t *const *channels, void *panel) {
    int8_t *packed = static_cast<int8_t *>(panel);
    for (size_t c = 0; c < MOE_RVV_NR; ++c) {
        for (size_t i = 0; i < k; ++i) {
            packed[i * MOE_RVV_NR + c] = channels[c] == NULL ? int8_t{0} : channels[c][i];
        }
    }
}
