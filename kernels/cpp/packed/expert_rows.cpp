// One expert's blocks: how many rows share a walk through its weights, and the kernel calls.
#include "expert_rows.h"

#include <algorithm>

namespace moe {
namespace packed {
namespace {

// Experts up to this size are walked once per two tiles of mr rows: their weights come from L2 at
// the pace at which the tiles compute, and the tiles' accumulators and h never leave L1. Larger
// ones are walked once per kBlockRows.
constexpr std::size_t kExpertInCacheBytes = 256 * 1024;
constexpr std::size_t kTilesInL1 = 2;
constexpr std::size_t kActivatedRows = 4;

void apply_to_block(const moe_microkernels &mk, const PackedWeights &weights, std::size_t expert,
                    const ExpertRows &rows, std::size_t begin, std::size_t count,
                    ExpertScratch &scratch, PhaseTimers &timers, int32_t thread) {
    const ExpertShape &shape = weights.shape;
    timers.enter(thread, MOE_PHASE_GATE_UP);
    const void *const *x = scratch.tiles.prepare(mk, shape.d_model, rows.x + begin, count);
    const Panels gate_up = weights.gate_up(expert);
    std::size_t step = panels_at_once(mk, gate_up.bytes_each);
    for (std::size_t p = 0; p < gate_up.count; p += step) {
        const Panels panels = gate_up.part(p, step);
        for (std::size_t m = 0; m < count; m += mk.mr) {
            multiply(mk, x + m, std::min(mk.mr, count - m), panels,
                     scratch.acc.data() + m * scratch.acc_stride + p * mk.nr, scratch.acc_stride);
        }
    }

    timers.enter(thread, MOE_PHASE_ACTIVATION);
    const void *h_rows[kBlockRows];
    // A few rows in turn: quantizing one waits for its largest value, the next row's SiLU does not.
    for (std::size_t m = 0; m < count; m += kActivatedRows) {
        const std::size_t few = std::min(kActivatedRows, count - m);
        float largest[kActivatedRows];
        for (std::size_t r = 0; r < few; ++r) {
            largest[r] = mk.swiglu(
                shape.gate_up_panels, scratch.acc.data() + (m + r) * scratch.acc_stride,
                weights.gate_up_scales(expert), rows.x_scale[begin + m + r],
                scratch.h.data() + r * shape.h_padded);
        }
        for (std::size_t r = 0; r < few; ++r) {
            uint8_t *h_row = scratch.h_row.data() + (m + r) * scratch.h_row_bytes;
            scratch.h_scale[m + r] = mk.quantize(
                shape.d_ff, scratch.h.data() + r * shape.h_padded, largest[r], h_row);
            h_rows[m + r] = h_row;
        }
    }

    timers.enter(thread, MOE_PHASE_DOWN);
    const void *const *h = scratch.tiles.prepare(mk, shape.d_ff, h_rows, count);
    const moe_microkernels &products = *moe_down_kernels(&mk);
    // A few panels at once, so that the stores to `out`, which miss the caches, drain behind products.
    const Panels down = weights.down(expert);
    step = std::min(kDownPanels, panels_at_once(products, down.bytes_each));
    for (std::size_t p = 0; p < down.count; p += step) {
        const Panels panels = down.part(p, step);
        const std::size_t channels = panels.count * mk.nr;
        for (std::size_t m = 0; m < count; m += mk.mr) {
            const std::size_t mr = std::min(mk.mr, count - m);
            multiply(products, h + m, mr, panels, scratch.acc.data(), channels);
            mk.dequantize(mr, channels, scratch.acc.data(), channels, weights.down_scales(expert),
                          scratch.h_scale + m, p * mk.nr, rows.out + begin + m);
        }
    }
}

} // namespace

ExpertScratch::ExpertScratch(const moe_microkernels &mk, const ExpertShape &shape)
    : h_row_bytes(mk.row_bytes(shape.d_ff)),
      acc_stride(2 * shape.h_padded), acc(std::max(kBlockRows * acc_stride, mk.mr * kDownPanels * mk.nr)),
      h(kActivatedRows * shape.h_padded), h_row(kBlockRows * h_row_bytes), h_scale{},
      tiles(mk, std::max(shape.d_model, shape.d_ff)) {}

void ExpertScratch::zero() {
    acc.zero();
    h.zero();
    h_row.zero();
    tiles.zero();
}

int64_t ExpertScratch::bytes() const {
    return acc.bytes() + h.bytes() + h_row.bytes() + tiles.bytes();
}

void apply_expert(const moe_microkernels &mk, const PackedWeights &weights, std::size_t expert,
                  const ExpertRows &rows, ExpertScratch &scratch, PhaseTimers &timers,
                  int32_t thread) {
    const bool in_cache = weights.shape.expert_bytes <= kExpertInCacheBytes;
    const std::size_t step = in_cache ? std::min(kTilesInL1 * mk.mr, kBlockRows) : kBlockRows;
    for (std::size_t begin = 0; begin < rows.count; begin += step) {
        apply_to_block(mk, weights, expert, rows, begin, std::min(step, rows.count - begin),
                       scratch, timers, thread);
    }
}

} // namespace packed
} // namespace moe
