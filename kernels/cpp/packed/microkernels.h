// What an instruction-set path supplies to the plans over packed weights: microkernels and their
// tile sizes.
//
// The plans (packed_plan.cpp, dispatched_plan.cpp and the files beside them) know nothing of an
// instruction set. They ask this table for sizes, let the path lay out weights and activations as it
// likes, and call its microkernels on whole tiles. A new path is one folder of microkernels and one
// table.
//
// Microkernels are freestanding: pointers and sizes only, no allocation, no I/O, no threads, no
// calls into libraries (but for portable/, see rows__portable.h), so that the same objects can run in
// an emulator. Sizes are in elements
// unless named otherwise. `rows` are activation rows (one per token), `panels` hold weights.
//
//   activation row  K int8 values of one token in the path's own form, row_bytes(K) bytes
//   panel           nr output channels x K weights in the path's own form, panel_bytes(K) bytes,
//                   64-aligned; consecutive panels are contiguous. Channels beyond the
//                   matrix are zero
//   dual panel      a panel whose first nr/2 channels are of the gate matrix, the rest of up
//   acc             int32 products, acc[row * acc_stride + channel]
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { MOE_MAX_MR = 32 };

// acc[m, 0..nr) = exact int32 products of rows[m] with a panel of K = kc weights per channel.
typedef void (*moe_gemm_fn)(size_t kc, const void *const *rows, const void *panel, int32_t *acc,
                            size_t acc_stride);

// The same of `panels` consecutive panels, panel_bytes apart: panel p's products at acc + p * nr.
typedef void (*moe_gemm_panels_fn)(size_t kc, size_t panels, size_t panel_bytes,
                                   const void *const *rows, const void *panel, int32_t *acc,
                                   size_t acc_stride);

// z[m, 0..router_nr) += rows[m][0..kc) . r, for mr rows and a block of a router panel; set when
// first. The order of a row's sum does not depend on mr.
typedef void (*moe_router_fn)(size_t mr, size_t kc, const float *const *rows, const float *panel,
                              int first, float *z, size_t z_stride);

typedef struct moe_microkernels {
    const char *gemm_name;     // of the largest tile, for plan info
    const char *gemm_one_name; // of the kernel for one row
    size_t mr, nr, kr;     // largest tile: mr rows x nr channels, kr consecutive k kept together

    size_t (*row_bytes)(size_t k);
    size_t (*panel_bytes)(size_t k);
    // channels: nr pointers to k weights each, NULL for a channel of zeros.
    void (*pack_panel)(size_t k, const int8_t *const *channels, void *panel);
    // [m - 1] computes exactly m rows, 1 <= m <= mr; for each m one of the two, the other is NULL.
    moe_gemm_fn gemm[MOE_MAX_MR];
    moe_gemm_panels_fn gemm_panels[MOE_MAX_MR];
    // Weights that one call takes while several tiles of rows want them in turn, and one panel at least.
    size_t bytes_at_once;
    moe_gemm_panels_fn gemm_near; // for one row and weights that L2 holds; NULL: as for others


    // From so many rows on, gemm computes in tile registers, which each thread has to set for the
    // number of rows before the first product of such a number, and to release at the end of its part
    // of a forward; their rows lie row_bytes(kc) apart. 0: a path without; the functions are NULL
    // then. A path with has mr = MOE_MAX_MR.
    size_t tile_rows;
    void (*configure_tiles)(size_t mr);
    void (*release_tiles)(void);

    // Largest |v|; n values.
    float (*absmax)(size_t n, const float *v);
    // row = rint(v * (127 / largest)), half to even; a row with largest < 2^-100 becomes zeros.
    // Returns largest / 127, or 0 for such a row.
    float (*quantize)(size_t n, const float *v, float largest, void *row);
    // h = SiLU(g) * u from the accumulators of `panels` dual panels; scales: gate and up scales in
    // panel order, (panels, nr). h: (panels * nr / 2). Returns the largest |h|.
    float (*swiglu)(size_t panels, const int32_t *acc, const float *scales, float x_scale,
                    float *h);
    // out[m][offset + c] = f32(acc[m * acc_stride + c]) * (h_scale[m] * scales[offset + c]) for m <
    // mr rows and n channels, n a multiple of nr.
    void (*dequantize)(size_t mr, size_t n, const int32_t *acc, size_t acc_stride,
                       const float *scales, const float *h_scale, size_t offset,
                       float *const *out);
    // y = x (zeros when NULL), then y += gates[i] * parts[i] for i = 0..count-1, in this order.
    void (*combine)(size_t n, const float *x, const float *const *parts, const float *gates,
                    size_t count, float *y);

    size_t router_mr, router_nr; // tile of the router's product
    size_t router_kc;            // d per block: no sum has more than router_kc roundings inside one
    moe_router_fn router;
    moe_router_fn router_one; // for mr = 1 when there is only one token; its own order of summation
    float (*sum_squares)(size_t n, const float *v);
    // affinity = 1 / (1 + exp(-z)), score = affinity + bias; n values. Returns 1 when all z are
    // finite, else 0.
    int (*sigmoid_scores)(size_t n, const float *z, const float *bias, float *affinity,
                          float *score);
    // The first i in begin..n-1 with score[i] > threshold, n when there is none.
    size_t (*find_above)(size_t begin, size_t n, const float *score, float threshold);

    const struct moe_candidate_kernels *candidates; // candidate_kernels.h; NULL: the path has none
    // Whose pack_panel, panel_bytes and gemm serve the down matrix, with equal mr, nr and rows; NULL:
    // this table's own.
    const struct moe_microkernels *down;
} moe_microkernels;

static inline const moe_microkernels *moe_down_kernels(const moe_microkernels *mk) {
    return mk->down == NULL ? mk : mk->down;
}

#ifdef __cplusplus
}
#endif
