// One expert over a few rows: gate and up, activation, down; everything of a block stays in L1 or
// L2.
#pragma once

#include "../aligned_array.h"
#include "../phase_timer.h"
#include "packed_weights.h"
#include "tile_rows.h"

namespace moe {
namespace packed {

constexpr std::size_t kBlockRows = 32; // most rows of one expert at once
static_assert(kBlockRows == MOE_MAX_MR, "a path with tiles sets them once per block");
constexpr std::size_t kDownPanels = 4; // most panels of down between two conversions to fp32

// Buffers of one thread.
struct ExpertScratch {
    ExpertScratch(const moe_microkernels &mk, const ExpertShape &shape);
    void zero();
    int64_t bytes() const;

    const std::size_t h_row_bytes;
    const std::size_t acc_stride;
    AlignedArray<int32_t> acc;   // (kBlockRows, acc_stride), or of down (mr, kDownPanels * nr)
    AlignedArray<float> h;       // (kActivatedRows, h_padded)
    AlignedArray<uint8_t> h_row; // (kBlockRows, h_row_bytes)
    float h_scale[kBlockRows];
    TileRows tiles;
};

// The rows an expert is applied to.
struct ExpertRows {
    std::size_t count;           // 1..kBlockRows
    const void *x[kBlockRows];   // quantized rows
    float x_scale[kBlockRows];
    float *out[kBlockRows];      // (d_padded) f32 each, written
};

// out[i] = FFN_expert(x[i]), not yet multiplied by a gate.
void apply_expert(const moe_microkernels &mk, const PackedWeights &weights, std::size_t expert,
                  const ExpertRows &rows, ExpertScratch &scratch, PhaseTimers &timers,
                  int32_t thread);

} // namespace packed
} // namespace moe
