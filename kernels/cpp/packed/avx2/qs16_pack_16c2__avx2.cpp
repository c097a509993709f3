// Packs 16 router rows of int16 into one panel, at prepare: (pairs, 16, 2), zeros where padded.
#include "candidates__avx2.h"
#include "rows__avx2.h"
#include "vectors__avx2.h"

extern "C" void moe_qs16_pack_16c2__avx2(size_t k, const int16_t *const *channels,
                                         int16_t *panel) {
    MOE_REQUIRE(k > 0);
    for (size_t i = 0; i < moe_round_up(k, 2); ++i) {
        for (size_t c = 0; c < MOE_NR; ++c) {
            const bool inside = channels[c] != NULL && i < k;
            panel[(i / 2 * MOE_NR + c) * 2 + i % 2] = inside ? channels[c][i] : (int16_t)0;
        }
    }
}
