// The weights of a rank's experts in the order in which the microkernels read them, made once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "../aligned_array.h"
#include "../packed/microkernels.h"
#include "../thread_pool.h"
#include "moe_ep.h"

namespace moe {
namespace ep {

// Sizes of one expert in panels and bytes.
struct ExpertShape {
    ExpertShape(const moe_microkernels &mk, std::size_t hidden, std::size_t width);

    std::size_t h, n, m;
    std::size_t pairs;       // of a gate panel and the up panel of the same channels
    std::size_t down_panels;
    std::size_t panel_bytes, down_panel_bytes;
    std::size_t m_padded, h_padded; // channels of all panels
    std::size_t bytes;
};

// One expert's panels: gate 0, up 0, gate 1, up 1, ..., then down 0, 1, ...: in this order the products
// read them, each once per block of rows.
struct PackedExpert {
    const ExpertShape *shape;
    const uint8_t *panels;
    const float *gate_scale, *up_scale; // (m_padded), zero beyond m
    const float *down_scale;            // (h_padded), zero beyond h

    const uint8_t *gate_panel(std::size_t p) const { return panels + 2 * p * shape->panel_bytes; }
    const uint8_t *up_panel(std::size_t p) const { return gate_panel(p) + shape->panel_bytes; }
    const uint8_t *down_panel(std::size_t p) const {
        return panels + 2 * shape->pairs * shape->panel_bytes + p * shape->down_panel_bytes;
    }
};

class Experts {
public:
    Experts(const moe_microkernels &mk, const moe_ep_setup &setup, ThreadPool &pool);

    // Index local_experts is the shared expert.
    const PackedExpert &operator[](std::size_t expert) const { return experts_[expert]; }
    std::size_t local() const { return local_; }
    bool has_shared() const { return experts_.size() > local_; }
    int64_t bytes() const { return panels_.bytes() + scales_.bytes(); }

    const ExpertShape routed;
    const ExpertShape shared; // routed's where there is none

private:
    std::size_t local_;
    AlignedArray<uint8_t> panels_;
    AlignedArray<float> scales_;
    std::vector<PackedExpert> experts_;
};

} // namespace ep
} // namespace moe
