// int8 product, one row x 16 channels: three of the four rows of a tile are copies and go nowhere.
//
// Software-pipelined: the weights of the next tile of k are on their way while those of this one are
// multiplied. The dual-output form of the kernel is its use on a dual panel, whose first two blocks
// are of the gate matrix and the last two of up: they share the row's tile.
#include "rows__ime.h"

extern "C" MOE_IME_GEMM(1) {
    (void)acc_stride;
    const size_t tiles = moe_ime_tiles(kc);
    const int8_t *x = static_cast<const int8_t *>(rows[0]);
    const int8_t *w0 = static_cast<const int8_t *>(panel);
    const int8_t *w1 = w0 + tiles * MOE_IME_TILE_BYTES;
    const int8_t *w2 = w1 + tiles * MOE_IME_TILE_BYTES;
    const int8_t *w3 = w2 + tiles * MOE_IME_TILE_BYTES;
    size_t pairs = (tiles - 1) / 2; // with a tile to load behind the second one
    const bool one_more = tiles % 2 == 0;
    uint64_t eight;
    __asm__ volatile("vsetivli zero, 16, e32, m2, ta, ma\n\t"
                     "vmv.v.i v16, 0\n\t"
                     "vmv.v.i v18, 0\n\t"
                     "vmv.v.i v20, 0\n\t"
                     "vmv.v.i v22, 0\n\t"
                     "vl1re8.v v1, (%[w0])\n\t"
                     "vl1re8.v v2, (%[w1])\n\t"
                     "vl1re8.v v3, (%[w2])\n\t"
                     "vl1re8.v v4, (%[w3])\n\t"
                     "beqz %[pairs], 2f\n"
                     "1:\n\t"
                     "vsetivli zero, 4, e64, m1, ta, ma\n\t"
                     "ld %[eight], 0(%[x])\n\t"
                     "vmv.v.x v0, %[eight]\n\t"
                     "ld %[eight], 8(%[x])\n\t"
                     "vmv.v.x v9, %[eight]\n\t"
                     "addi %[x], %[x], 16\n\t"
                     "addi %[w0], %[w0], 32\n\t"
                     "addi %[w1], %[w1], 32\n\t"
                     "addi %[w2], %[w2], 32\n\t"
                     "addi %[w3], %[w3], 32\n\t"
                     "vsetvli zero, %[all], e8, m1, ta, ma\n\t"
                     "vl1re8.v v5, (%[w0])\n\t" MOE_VMADOT(16, 0, 1)
                     "vl1re8.v v6, (%[w1])\n\t" MOE_VMADOT(18, 0, 2)
                     "vl1re8.v v7, (%[w2])\n\t" MOE_VMADOT(20, 0, 3)
                     "vl1re8.v v8, (%[w3])\n\t" MOE_VMADOT(22, 0, 4)
                     "addi %[w0], %[w0], 32\n\t"
                     "addi %[w1], %[w1], 32\n\t"
                     "addi %[w2], %[w2], 32\n\t"
                     "addi %[w3], %[w3], 32\n\t"
                     "addi %[pairs], %[pairs], -1\n\t"
                     "vl1re8.v v1, (%[w0])\n\t" MOE_VMADOT(16, 9, 5)
                     "vl1re8.v v2, (%[w1])\n\t" MOE_VMADOT(18, 9, 6)
                     "vl1re8.v v3, (%[w2])\n\t" MOE_VMADOT(20, 9, 7)
                     "vl1re8.v v4, (%[w3])\n\t" MOE_VMADOT(22, 9, 8)
                     "bnez %[pairs], 1b\n"
                     "2:\n\t" // one tile is loaded, one more may follow
                     "vsetivli zero, 4, e64, m1, ta, ma\n\t"
                     "ld %[eight], 0(%[x])\n\t"
                     "vmv.v.x v0, %[eight]\n\t"
                     "vsetvli zero, %[all], e8, m1, ta, ma\n\t" MOE_VMADOT(16, 0, 1)
                     MOE_VMADOT(18, 0, 2) MOE_VMADOT(20, 0, 3) MOE_VMADOT(22, 0, 4)
                     "beqz %[one_more], 3f\n\t"
                     "vsetivli zero, 4, e64, m1, ta, ma\n\t"
                     "ld %[eight], 8(%[x])\n\t"
                     "vmv.v.x v9, %[eight]\n\t"
                     "addi %[w0], %[w0], 32\n\t"
                     "addi %[w1], %[w1], 32\n\t"
                     "addi %[w2], %[w2], 32\n\t"
                     "addi %[w3], %[w3], 32\n\t"
                     "vsetvli zero, %[all], e8, m1, ta, ma\n\t"
                     "vl1re8.v v5, (%[w0])\n\t"
                     "vl1re8.v v6, (%[w1])\n\t"
                     "vl1re8.v v7, (%[w2])\n\t"
                     "vl1re8.v v8, (%[w3])\n\t" MOE_VMADOT(16, 9, 5) MOE_VMADOT(18, 9, 6)
                     MOE_VMADOT(20, 9, 7) MOE_VMADOT(22, 9, 8)
                     "3:\n\t"
                     "vsetivli zero, 4, e32, m1, ta, ma\n\t" // the first row of each tile
                     "vse32.v v16, (%[out0])\n\t"
                     "vse32.v v18, (%[out1])\n\t"
                     "vse32.v v20, (%[out2])\n\t"
                     "vse32.v v22, (%[out3])\n\t"
                     : [x] "+r"(x), [w0] "+r"(w0), [w1] "+r"(w1), [w2] "+r"(w2), [w3] "+r"(w3),
                       [pairs] "+r"(pairs), [eight] "=&r"(eight)
                     : [all] "r"(size_t{MOE_IME_TILE_BYTES}), [one_more] "r"(size_t{one_more}),
                       [out0] "r"(acc), [out1] "r"(acc + 4), [out2] "r"(acc + 8),
                       [out3] "r"(acc + 12)
                     : "memory", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v16",
                       "v17", "v18", "v19", "v20", "v21", "v22", "v23");
}
