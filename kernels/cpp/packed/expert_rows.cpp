#include "expert_rows.h"

#include <algorithm>

namespace moe {
namespace packed {
namespace {

// Experts up to this size are walked once per tile of mr rows: their weights come from L2 at the
// pace at which the tile computes, and a tile's accumulators and h never leave L1. Larger ones are
// walked once per kBlockRows.
constexpr std::size_t kExpertInCacheBytes = 256 * 1024;

// acc[m, 0..panels * nr) for `count` rows.
template <class Panel>
void multiply(const moe_microkernels &mk, std::size_t kc, const void *const *rows,
              std::size_t count, std::size_t panels, const Panel &panel, ExpertScratch &scratch) {
    for (std::size_t p = 0; p < panels; ++p) {
        for (std::size_t m = 0; m < count; m += mk.mr) {
            const std::size_t mr = std::min(mk.mr, count - m);
            mk.gemm[mr - 1](kc, rows + m, panel(p),
                            scratch.acc.data() + m * scratch.acc_stride + p * mk.nr,
                            scratch.acc_stride);
        }
    }
}

void apply_to_block(const moe_microkernels &mk, const PackedWeights &weights, std::size_t expert,
                    const ExpertRows &rows, std::size_t begin, std::size_t count,
                    ExpertScratch &scratch, PhaseTimers &timers, int32_t thread) {
    const ExpertShape &shape = weights.shape;
    timers.enter(thread, MOE_PHASE_GATE_UP);
    multiply(mk, shape.d_model, rows.x + begin, count, shape.gate_up_panels,
             [&](std::size_t p) { return weights.gate_up_panel(expert, p); }, scratch);

    timers.enter(thread, MOE_PHASE_ACTIVATION);
    const void *h_rows[kBlockRows];
    for (std::size_t m = 0; m < count; ++m) {
        uint8_t *h_row = scratch.h_row.data() + m * scratch.h_row_bytes;
        const float largest = mk.swiglu(
            shape.gate_up_panels, scratch.acc.data() + m * scratch.acc_stride,
            weights.gate_up_scales(expert), rows.x_scale[begin + m], scratch.h.data());
        scratch.h_scale[m] = mk.quantize(shape.d_ff, scratch.h.data(), largest, h_row);
        h_rows[m] = h_row;
    }

    timers.enter(thread, MOE_PHASE_DOWN);
    multiply(mk, shape.d_ff, h_rows, count, shape.down_panels,
             [&](std::size_t p) { return weights.down_panel(expert, p); }, scratch);
    for (std::size_t m = 0; m < count; ++m) {
        mk.dequantize(shape.d_padded, scratch.acc.data() + m * scratch.acc_stride,
                      weights.down_scales(expert), scratch.h_scale[m], rows.out[begin + m]);
    }
}

} // namespace

ExpertScratch::ExpertScratch(const moe_microkernels &mk, const ExpertShape &shape)
    : h_row_bytes(mk.row_bytes(shape.d_ff)),
      acc_stride(std::max(2 * shape.h_padded, shape.d_padded)), acc(kBlockRows * acc_stride),
      h(shape.h_padded), h_row(kBlockRows * h_row_bytes), h_scale{} {}

void ExpertScratch::zero() {
    acc.zero();
    h.zero();
    h_row.zero();
}

int64_t ExpertScratch::bytes() const { return acc.bytes() + h.bytes() + h_row.bytes(); }

void apply_expert(const moe_microkernels &mk, const PackedWeights &weights, std::size_t expert,
                  const ExpertRows &rows, ExpertScratch &scratch, PhaseTimers &timers,
                  int32_t thread) {
    const std::size_t step =
        weights.shape.expert_bytes <= kExpertInCacheBytes ? mk.mr : kBlockRows;
    for (std::size_t begin = 0; begin < rows.count; begin += step) {
        apply_to_block(mk, weights, expert, rows, begin, std::min(step, rows.count - begin),
                       scratch, timers, thread);
    }
}

} // namespace packed
} // namespace moe
