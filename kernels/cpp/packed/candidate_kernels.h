// What an instruction-set path supplies to the candidate router (router_candidates.h), beside
// microkernels.h and under its rules. A path without it leaves the table's pointer NULL.
//
//   row16     int16 values of one token in the path's own form, row_values(D) of them, zeros behind D
//   panel16   nr router rows x D int16 in the path's own form, panel_values(D) of them, 64-aligned
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Of each expert, padded with zeros to whole panels.
typedef struct moe_candidate_rows {
    const float *scale;     // s: the row is about s * q
    const float *norm;      // bound of ||s q||
    const float *left_over; // bound of ||r - s q||, and more: see router_candidates.h
    const float *bias;
} moe_candidate_rows;

// Of one token.
typedef struct moe_candidate_token {
    float scale;     // s: the token is about s * q
    float norm;      // bound of ||x||
    float left_over; // bound of ||x - s q||
    float rounding;  // bound of what fp32 adds to the error of a score
} moe_candidate_token;

typedef struct moe_candidate_kernels {
    size_t mr, nr;   // tile: mr tokens x nr experts
    size_t kc_pairs; // pairs of d per block of a panel
    size_t (*row_values)(size_t d);
    size_t (*panel_values)(size_t d);
    // channels: nr pointers to d values each, NULL for a row of zeros.
    void (*pack_panel)(size_t d, const int16_t *const *channels, int16_t *panel);
    // row = rint(v * factor), half to even, |v * factor| <= 32767; returns the sum of the squares
    // of v * factor - row.
    float (*quantize)(size_t n, const float *v, float factor, int16_t *row);
    // acc[m, 0..nr) += rows[m] . panel over `pairs` pairs of d, modulo 2^32; set when first.
    void (*gemm)(size_t mr, size_t pairs, const int16_t *const *rows, const int16_t *panel,
                 int first, int32_t *acc, size_t acc_stride);
    // lower[e] <= exact score <= upper[e] for n experts; both are written up to a whole panel.
    void (*score_bounds)(size_t n, const int32_t *acc, const moe_candidate_rows *rows,
                         const moe_candidate_token *token, float *lower, float *upper);
    // v . w with at most n / 32 + 6 roundings in a row.
    float (*dot)(size_t n, const float *v, const float *w);
    // gemm computes in tile registers, set for MOE_MAX_MR rows (microkernels.h); its rows lie row_values(D)
    // apart, and those of a whole tile may be read.
    int by_tiles;
} moe_candidate_kernels;

#ifdef __cplusplus
}
#endif
