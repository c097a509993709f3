// Packing: columns of (h, n) matrices become the channels of panels.
#include "experts.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "../large_pages.h"

namespace moe {
namespace ep {
namespace {

constexpr std::size_t kMaxChannels = 64; // of a panel
constexpr std::size_t kLines = 64;       // rows of a matrix that are transposed at once

std::size_t divide_up(std::size_t n, std::size_t step) { return (n + step - 1) / step; }

// Columns [first, first + channels) of (k, columns) to one panel, through `column`: (nr, k) scratch.
void pack_columns(const moe_microkernels &mk, std::size_t k, std::size_t columns,
                  const int8_t *matrix, std::size_t first, std::size_t channels, int8_t *column,
                  uint8_t *panel) {
    const int8_t *pointers[kMaxChannels] = {};
    for (std::size_t c = 0; c < channels; ++c) {
        pointers[c] = column + c * k;
    }
    for (std::size_t begin = 0; begin < k; begin += kLines) {
        const std::size_t end = std::min(k, begin + kLines);
        for (std::size_t c = 0; c < channels; ++c) {
            const int8_t *values = matrix + first + c;
            for (std::size_t i = begin; i < end; ++i) {
                column[c * k + i] = values[i * columns];
            }
        }
    }
    mk.pack_panel(k, pointers, panel);
}

void pack_expert(const moe_microkernels &mk, const ExpertShape &shape, const moe_ep_expert &from,
                 int8_t *column, uint8_t *to) {
    for (std::size_t p = 0; p < shape.pairs; ++p) {
        const std::size_t first = p * mk.nr;
        const std::size_t channels = std::min(mk.nr, shape.m - first);
        for (const std::size_t half : {std::size_t{0}, shape.m}) {
            pack_columns(mk, shape.h, shape.n, from.gmm1, half + first, channels, column, to);
            to += shape.panel_bytes;
        }
    }
    const moe_microkernels &down = *moe_down_kernels(&mk);
    for (std::size_t p = 0; p < shape.down_panels; ++p) {
        const std::size_t first = p * mk.nr;
        pack_columns(down, shape.m, shape.h, from.gmm2, first, std::min(mk.nr, shape.h - first),
                     column, to);
        to += shape.down_panel_bytes;
    }
}

float *copy_padded(const float *from, std::size_t n, std::size_t padded, float *to) {
    std::copy(from, from + n, to);
    std::fill(to + n, to + padded, 0.0f);
    return to + padded;
}

std::size_t scales_of(const ExpertShape &shape) { return 2 * shape.m_padded + shape.h_padded; }

} // namespace

ExpertShape::ExpertShape(const moe_microkernels &mk, std::size_t hidden, std::size_t width)
    : h(hidden), n(width), m(width / 2), pairs(divide_up(m, mk.nr)),
      down_panels(divide_up(h, mk.nr)), panel_bytes(mk.panel_bytes(h)),
      down_panel_bytes(moe_down_kernels(&mk)->panel_bytes(m)), m_padded(pairs * mk.nr),
      h_padded(down_panels * mk.nr),
      bytes(2 * pairs * panel_bytes + down_panels * down_panel_bytes) {}

Experts::Experts(const moe_microkernels &mk, const moe_ep_setup &setup, ThreadPool &pool)
    : routed(mk, static_cast<std::size_t>(setup.h), static_cast<std::size_t>(setup.n)),
      shared(mk, static_cast<std::size_t>(setup.h),
             static_cast<std::size_t>(setup.n_shared > 0 ? setup.n_shared : setup.n)),
      local_(static_cast<std::size_t>(setup.local_experts)),
      panels_(local_ * routed.bytes + (setup.n_shared > 0 ? shared.bytes : 0)),
      scales_(local_ * scales_of(routed) + (setup.n_shared > 0 ? scales_of(shared) : 0)) {
    advise_large_pages(panels_.data(), panels_.size());
    const std::size_t count = local_ + (setup.n_shared > 0 ? 1 : 0);
    float *scales = scales_.data();
    for (std::size_t e = 0; e < count; ++e) {
        const ExpertShape &shape = e < local_ ? routed : shared;
        const moe_ep_expert &from = e < local_ ? setup.experts[e] : *setup.shared;
        PackedExpert expert{&shape, panels_.data() + e * routed.bytes, scales,
                            scales + shape.m_padded, scales + 2 * shape.m_padded};
        scales = copy_padded(from.gmm1_scale, shape.m, shape.m_padded, scales);
        scales = copy_padded(from.gmm1_scale + shape.m, shape.m, shape.m_padded, scales);
        scales = copy_padded(from.gmm2_scale, shape.h, shape.h_padded, scales);
        experts_.push_back(expert);
    }
    const std::size_t longest = std::max({routed.h, routed.m, shared.m});
    std::vector<AlignedArray<int8_t>> columns;
    for (int32_t thread = 0; thread < pool.threads(); ++thread) {
        columns.emplace_back(mk.nr * longest);
    }
    std::atomic<std::size_t> next{0};
    pool.run([&](int32_t thread, int32_t) {
        for (std::size_t e = next++; e < count; e = next++) {
            pack_expert(mk, *experts_[e].shape, e < local_ ? setup.experts[e] : *setup.shared,
                        columns[static_cast<std::size_t>(thread)].data(),
                        panels_.data() + e * routed.bytes);
        }
    });
}

} // namespace ep
} // namespace moe
