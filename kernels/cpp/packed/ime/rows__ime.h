// Layout of weight panels on the path of SpacemiT's integer matrix extension (IME), and the
// signatures of its kernels. Rows, and all kernels but the products, are those of ../rvv.
//
// vmadot vd, vs1, vs2 adds to the 4 x 4 int32 tile of vd, vd+1 the products of 4 rows x 8 k of vs1
// with 4 channels x 8 k of vs2, all signed; that is its shape with vector registers of 256 bits, the
// only length that this path runs on.
// Panel of 16 channels, K padded with zero weights to K' = round_up(K, 8): (4, K' / 8, 4, 8) int8,
// four blocks of four channels, each with one tile of 32 bytes after another.
#pragma once

#include "../rvv/rows__rvv.h"

#define MOE_IME_MR 8
#define MOE_IME_KR 8
#define MOE_IME_CHANNELS 4
#define MOE_IME_TILE_BYTES 32
#define MOE_IME_BLOCKS (MOE_RVV_NR / MOE_IME_CHANNELS)

// .insn r opcode6, func3, func7, rd, rs1, rs2: xN stands for vN.
#define MOE_VMADOT(vd, vs1, vs2) ".insn r 0x2b, 3, 0x71, x" #vd ", x" #vs1 ", x" #vs2 "\n\t"

#ifdef __cplusplus
extern "C" {
#endif

static inline size_t moe_ime_tiles(size_t k) { return (k + MOE_IME_KR - 1) / MOE_IME_KR; }

#define MOE_IME_GEMM(m)                                                                            \
    void moe_qs8_gemm_##m##x16c8__ime(size_t kc, const void *const *rows, const void *panel,       \
                                      int32_t *acc, size_t acc_stride)
MOE_IME_GEMM(1);
MOE_IME_GEMM(2);
MOE_IME_GEMM(3);
MOE_IME_GEMM(4);
MOE_IME_GEMM(5);
MOE_IME_GEMM(6);
MOE_IME_GEMM(7);
MOE_IME_GEMM(8);
void moe_qs8_pack_16c8__ime(size_t k, const int8_t *const *channels, void *panel);

#ifdef __cplusplus
}
#endif
