// The layer's weights in the order in which the microkernels read them, made once at prepare.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "../aligned_array.h"
#include "microkernels.h"
#include "moe_prof.h"
#include "panel_products.h"
#include "../share.h"
#include "../thread_pool.h"

namespace moe {
namespace packed {

// Sizes of one expert in panels and bytes.
struct ExpertShape {
    ExpertShape(const moe_microkernels &mk, const moe_weights &w);

    std::size_t d_model, d_ff;
    std::size_t gate_up_panels; // dual panels: nr / 2 channels of gate and of up each
    std::size_t down_panels;
    std::size_t gate_up_panel_bytes, down_panel_bytes;
    std::size_t h_padded; // gate_up_panels * nr / 2 >= H
    std::size_t d_padded; // down_panels * nr >= D
    std::size_t expert_bytes;
};

// Which thread packs, and so first touches, what: on a machine with several memories a page lies
// near the thread that touched it first. By expert: a contiguous share of the experts; by panel: the
// same share of the panels of every expert.
enum class Placement { kByExpert, kByPanel };

class PackedWeights {
public:
    PackedWeights(const moe_microkernels &mk, const moe_weights &w, ThreadPool &pool,
                  Placement placement);

    Panels gate_up(std::size_t expert) const {
        return {gate_up_panel(expert, 0), shape.d_model, shape.gate_up_panel_bytes,
                shape.gate_up_panels};
    }
    Panels down(std::size_t expert) const {
        return {down_panel(expert, 0), shape.d_ff, shape.down_panel_bytes, shape.down_panels};
    }
    const uint8_t *gate_up_panel(std::size_t expert, std::size_t panel) const {
        return stored(expert) + panel * shape.gate_up_panel_bytes;
    }
    const uint8_t *down_panel(std::size_t expert, std::size_t panel) const {
        return stored(expert) + shape.gate_up_panels * shape.gate_up_panel_bytes +
               panel * shape.down_panel_bytes;
    }
    // (gate_up_panels, nr) f32: scales of the channels of the dual panels, zero where padded.
    const float *gate_up_scales(std::size_t expert) const {
        return gate_up_scales_.data() + expert * 2 * shape.h_padded;
    }
    // (d_padded) f32
    const float *down_scales(std::size_t expert) const {
        return down_scales_.data() + expert * shape.d_padded;
    }
    // (D, router_nr) f32 of one panel of experts: for each d the experts' weights together.
    const float *router_panel(std::size_t panel) const {
        return router_.data() + panel * shape.d_model * router_nr_;
    }
    std::size_t router_panels() const { return router_panels_; }
    int64_t bytes() const;

    const ExpertShape shape;

private:
    // Where an expert's panels lie: experts with equal matrices are stored once.
    const uint8_t *stored(std::size_t expert) const {
        return experts_.data() + static_cast<std::size_t>(slots_[expert]) * shape.expert_bytes;
    }
    void pack_gate_up(const moe_microkernels &mk, const moe_weights &w, std::size_t expert,
                      Share panels);
    void pack_down(const moe_microkernels &mk, const moe_weights &w, std::size_t expert,
                   Share panels);
    void pack_router(const moe_weights &w);

    const std::size_t router_nr_;
    const std::size_t router_panels_;
    std::vector<int32_t> owners_; // by expert: the first one with the same matrices
    std::vector<int32_t> slots_;  // by expert: its place in experts_
    AlignedArray<uint8_t> experts_;
    AlignedArray<float> gate_up_scales_;
    AlignedArray<float> down_scales_;
    AlignedArray<float> router_;
};

} // namespace packed
} // namespace moe
