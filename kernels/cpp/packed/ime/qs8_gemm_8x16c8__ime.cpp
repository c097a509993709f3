// int8 product, 2 to 8 rows x 16 channels: one or two tiles of rows against four of channels.
//
// A tile of rows is one indexed load: the rows lie anywhere. Rows beyond the last one are copies of
// it, and their products go nowhere. The four blocks of a panel share the rows' tiles (two outputs
// each of gate and up in a dual panel), and both tiles of rows share a block's weights.
#include "rows__ime.h"

namespace {

#define TILES_OF_WEIGHTS                                                                           \
    "vl1re8.v v4, (%[w0])\n\t"                                                                     \
    "vl1re8.v v5, (%[w1])\n\t"                                                                     \
    "vl1re8.v v6, (%[w2])\n\t"                                                                     \
    "vl1re8.v v7, (%[w3])\n\t"                                                                     \
    "addi %[w0], %[w0], 32\n\t"                                                                    \
    "addi %[w1], %[w1], 32\n\t"                                                                    \
    "addi %[w2], %[w2], 32\n\t"                                                                    \
    "addi %[w3], %[w3], 32\n\t"                                                                    \
    "addi %[x], %[x], 8\n\t"                                                                       \
    "addi %[tiles], %[tiles], -1\n\t"
#define OPERANDS                                                                                   \
    : [x] "+r"(x), [w0] "+r"(w0), [w1] "+r"(w1), [w2] "+r"(w2), [w3] "+r"(w3), [tiles] "+r"(tiles) \
    : [all] "r"(size_t{MOE_IME_TILE_BYTES}), [offsets] "r"(offsets), [second] "r"(offsets + 4),    \
      [out] "r"(products)                                                                        \
    : "memory", "t0", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11",    \
      "v12", "v13", "v14", "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23"

// products: (tiles of rows, 4 blocks, 4 rows, 4 channels)
template <size_t MR>
inline __attribute__((always_inline)) void gemm(size_t kc, const void *const *rows,
                                                const void *panel, int32_t *acc,
                                                size_t acc_stride) {
    static_assert(MR >= 2 && MR <= MOE_IME_MR, "two tiles of rows at most");
    constexpr bool two = MR > 4;
    size_t tiles = moe_ime_tiles(kc);
    uint64_t offsets[8];
    for (size_t m = 0; m < 8; ++m) {
        offsets[m] = reinterpret_cast<uintptr_t>(rows[m < MR ? m : MR - 1]) -
                     reinterpret_cast<uintptr_t>(rows[0]);
    }
    const int8_t *x = static_cast<const int8_t *>(rows[0]);
    const int8_t *w0 = static_cast<const int8_t *>(panel);
    const int8_t *w1 = w0 + tiles * MOE_IME_TILE_BYTES;
    const int8_t *w2 = w1 + tiles * MOE_IME_TILE_BYTES;
    const int8_t *w3 = w2 + tiles * MOE_IME_TILE_BYTES;
    int32_t products[two ? 128 : 64];
    if (two) {
        __asm__ volatile(
            "vsetivli zero, 16, e32, m2, ta, ma\n\t"
            "vmv.v.i v8, 0\n\t"
            "vmv.v.i v10, 0\n\t"
            "vmv.v.i v12, 0\n\t"
            "vmv.v.i v14, 0\n\t"
            "vmv.v.i v16, 0\n\t"
            "vmv.v.i v18, 0\n\t"
            "vmv.v.i v20, 0\n\t"
            "vmv.v.i v22, 0\n\t"
            "vsetivli zero, 4, e64, m1, ta, ma\n\t"
            "vle64.v v2, (%[offsets])\n\t"
            "vle64.v v3, (%[second])\n"
            "1:\n\t"
            "vsetivli zero, 4, e64, m1, ta, ma\n\t"
            "vluxei64.v v0, (%[x]), v2\n\t"
            "vluxei64.v v1, (%[x]), v3\n\t"
            "vsetvli zero, %[all], e8, m1, ta, ma\n\t" TILES_OF_WEIGHTS MOE_VMADOT(8, 0, 4)
            MOE_VMADOT(10, 0, 5) MOE_VMADOT(12, 0, 6) MOE_VMADOT(14, 0, 7) MOE_VMADOT(16, 1, 4)
            MOE_VMADOT(18, 1, 5) MOE_VMADOT(20, 1, 6) MOE_VMADOT(22, 1, 7)
            "bnez %[tiles], 1b\n\t"
            "vs8r.v v8, (%[out])\n\t"
            "addi t0, %[out], 256\n\t"
            "vs8r.v v16, (t0)\n\t" OPERANDS);
    } else {
        __asm__ volatile(
            "vsetivli zero, 16, e32, m2, ta, ma\n\t"
            "vmv.v.i v8, 0\n\t"
            "vmv.v.i v10, 0\n\t"
            "vmv.v.i v12, 0\n\t"
            "vmv.v.i v14, 0\n\t"
            "vsetivli zero, 4, e64, m1, ta, ma\n\t"
            "vle64.v v2, (%[offsets])\n"
            "1:\n\t"
            "vsetivli zero, 4, e64, m1, ta, ma\n\t"
            "vluxei64.v v0, (%[x]), v2\n\t"
            "vsetvli zero, %[all], e8, m1, ta, ma\n\t" TILES_OF_WEIGHTS MOE_VMADOT(8, 0, 4)
            MOE_VMADOT(10, 0, 5) MOE_VMADOT(12, 0, 6) MOE_VMADOT(14, 0, 7)
            "bnez %[tiles], 1b\n\t"
            "vs8r.v v8, (%[out])\n\t" OPERANDS);
    }
    for (size_t m = 0; m < MR; ++m) {
        for (size_t block = 0; block < MOE_IME_BLOCKS; ++block) {
            __builtin_memcpy(acc + m * acc_stride + block * MOE_IME_CHANNELS,
                             products + (m / 4 * MOE_IME_BLOCKS + block) * 16 + m % 4 * 4,
                             MOE_IME_CHANNELS * sizeof(int32_t));
        }
    }
}

} // namespace

#define GEMM(m)                                                                                    \
    extern "C" MOE_IME_GEMM(m) { gemm<m>(kc, rows, panel, acc, acc_stride); }
GEMM(2)
GEMM(3)
GEMM(4)
GEMM(5)
GEMM(6)
GEMM(7)
GEMM(8)
