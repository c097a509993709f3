// Packs 32 router rows of int16 into one panel, at prepare: (pairs, 32, 2), zeros where padded.
#include "candidates__avx512_vnni.h"
#include "rows__avx512_vnni.h"
#include "vectors__avx512_vnni.h"

extern "C" void moe_qs16_pack_32c2__avx512_vnni(size_t k, const int16_t *const *channels,
                                                int16_t *panel) {
    MOE_REQUIRE(k > 0);
    for (size_t i = 0; i < moe_vnni_round_up(k, 2); ++i) {
        for (size_t c = 0; c < MOE_VNNI_NR; ++c) {
            const bool inside = channels[c] != NULL && i < k;
            panel[(i / 2 * MOE_VNNI_NR + c) * 2 + i % 2] = inside ? channels[c][i] : (int16_t)0;
        }
    }
}
