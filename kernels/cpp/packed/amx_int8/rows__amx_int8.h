// Layout of activation rows and weight panels on the AMX-INT8 path, and its own kernels' signatures.
//
// Row of one token: that of ../avx512_vnni/rows__avx512_vnni.h, u = q + 128 padded to whole lines, but
// an odd number of lines long: sixteen rows at that distance lie in sixteen sets of L1, where a power
// of two would put them all into one or two.
//
// Which instruction for how many rows, in cycles per 64 k of a panel (32 lines of weights), from Intel's figures
// (tile loads of two lines a cycle from L1, products of a cycle per row, both at once; 48 bytes a cycle from
// L2), not measured:
//   rows                    1    2    3    8   16   32
//   vpdpbusd, two a cycle  16   32   48  128  256  512
//   tiles, weights in L1   26   26   26   26   32   64   (below 14 rows the latency of 52 binds four chains)
//   weights from L2        43   43   43   43   43   43   at least, for both
// An expert is larger than L1, so the last line binds up to two rows, where vpdpbusd needs no tiles to be set
// (204 cycles), no copies of rows and no stores through memory; from three rows on tiles win.
//
// Panel of 32 channels: that of the same file, K padded with zero weights to a multiple of 64:
//   correction (32) int32              -128 * sum over k of w[c, k]
//   weights    (K'/64, 16, 2, 16, 4)   for four consecutive k two lines of 16 channels x 4 bytes
// A B tile (16 rows of 64 bytes: four k of 16 channels each) is every second line of 16 such pairs, so
// tileloadd with a stride of 128 reads what vpdpbusd reads for one and two rows.
//
// tdpbusd, unsigned activations by signed weights, instead of tdpbssd: rows exist in one form for both
// instructions, and the correction costs nothing, since the accumulators are loaded from it (with a
// stride of 0) instead of being set to zero. sum(u w) + correction = sum(q w): exact for every int8
// weight, since int32 sums wrap modulo 2^32 on the way (neither instruction saturates) and the result
// fits for k <= 132104.
#pragma once

#include "../avx512_vnni/rows__avx512_vnni.h"

#define MOE_AMX_KR 64
#define MOE_AMX_TILE_ROWS 16
#define MOE_AMX_LEAST_ROWS 3 // fewer take vpdpbusd, see above

#ifdef __cplusplus
extern "C" {
#endif

#define MOE_DECLARE_GEMM(mr)                                                                       \
    void moe_qu8s8_gemm_##mr##x32c64__amx_int8(size_t kc, size_t panels, size_t panel_bytes,       \
                                               const void *const *rows, const void *panel,         \
                                               int32_t *acc, size_t acc_stride);
#define MOE_AMX_EACH_SMALL_TILE(what)                                                              \
    what(3) what(4) what(5) what(6) what(7) what(8) what(9) what(10) what(11) what(12) what(13)    \
        what(14) what(15) what(16)
MOE_AMX_EACH_SMALL_TILE(MOE_DECLARE_GEMM)
MOE_DECLARE_GEMM(32) // 17 to 32 rows
#undef MOE_DECLARE_GEMM
void moe_qs8_pack_32c64__amx_int8(size_t k, const int8_t *const *channels, void *panel);
void moe_configure_tiles__amx_int8(size_t mr);
void moe_release_tiles__amx_int8(void);

#ifdef __cplusplus
}
#endif
