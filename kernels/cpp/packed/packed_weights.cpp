// Packing the layer's weights into panels, in huge pages where the system has them.
#include "packed_weights.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "../large_pages.h"
#include "../same_memory.h"

namespace moe {
namespace packed {
namespace {

constexpr std::size_t kMaxChannels = 64; // of a panel

std::size_t divide_up(std::size_t n, std::size_t step) { return (n + step - 1) / step; }

// By expert, the first one whose three matrices are equal to its own. Experts of a trained or seeded
// layer differ in their first bytes; those that share memory because the layer would not fit need
// not be read: there can be ten gigabytes of them.
std::vector<int32_t> first_of_equals(const moe_weights &w) {
    const std::size_t matrix = static_cast<std::size_t>(w.d_model) * static_cast<std::size_t>(w.d_ff);
    const std::size_t head = std::min<std::size_t>(matrix, 64);
    const int32_t stored = w.num_experts + w.has_shared;
    std::unique_ptr<SharedMappings> mappings; // asked for only where two may be equal
    const auto same = [&](std::size_t a, std::size_t b, std::size_t size) {
        for (const int8_t *values : {w.gate, w.up, w.down}) {
            const int8_t *left = values + a * matrix, *right = values + b * matrix;
            const bool shared = mappings != nullptr && mappings->same(left, right, size);
            if (!shared && std::memcmp(left, right, size) != 0) {
                return false;
            }
        }
        return true;
    };
    const auto whole_same = [&](std::size_t a, std::size_t b) {
        if (mappings == nullptr) {
            mappings = std::make_unique<SharedMappings>();
        }
        return same(a, b, matrix);
    };
    std::vector<int32_t> owners, distinct;
    for (int32_t e = 0; e < stored; ++e) {
        const std::size_t expert = static_cast<std::size_t>(e);
        const auto found = std::find_if(distinct.begin(), distinct.end(), [&](int32_t other) {
            const std::size_t first = static_cast<std::size_t>(other);
            return same(first, expert, head) && whole_same(first, expert);
        });
        owners.push_back(found == distinct.end() ? e : *found);
        if (found == distinct.end()) {
            distinct.push_back(e);
        }
    }
    return owners;
}

std::vector<int32_t> slots_of(const std::vector<int32_t> &owners) {
    std::vector<int32_t> slots;
    int32_t used = 0;
    for (std::size_t e = 0; e < owners.size(); ++e) {
        const std::size_t owner = static_cast<std::size_t>(owners[e]);
        slots.push_back(owner == e ? used++ : slots[owner]);
    }
    return slots;
}

} // namespace

ExpertShape::ExpertShape(const moe_microkernels &mk, const moe_weights &w)
    : d_model(static_cast<std::size_t>(w.d_model)), d_ff(static_cast<std::size_t>(w.d_ff)),
      gate_up_panels(divide_up(d_ff, mk.nr / 2)), down_panels(divide_up(d_model, mk.nr)),
      gate_up_panel_bytes(mk.panel_bytes(d_model)), down_panel_bytes(moe_down_kernels(&mk)->panel_bytes(d_ff)),
      h_padded(gate_up_panels * mk.nr / 2), d_padded(down_panels * mk.nr),
      expert_bytes(gate_up_panels * gate_up_panel_bytes + down_panels * down_panel_bytes) {}

PackedWeights::PackedWeights(const moe_microkernels &mk, const moe_weights &w, ThreadPool &pool,
                             Placement placement)
    : shape(mk, w), router_nr_(mk.router_nr),
      router_panels_(divide_up(static_cast<std::size_t>(w.num_experts), mk.router_nr)),
      owners_(first_of_equals(w)), slots_(slots_of(owners_)),
      experts_((static_cast<std::size_t>(*std::max_element(slots_.begin(), slots_.end())) + 1) *
               shape.expert_bytes),
      gate_up_scales_(static_cast<std::size_t>(w.num_experts + w.has_shared) * 2 * shape.h_padded),
      down_scales_(static_cast<std::size_t>(w.num_experts + w.has_shared) * shape.d_padded),
      router_(router_panels_ * shape.d_model * router_nr_) {
    advise_large_pages(experts_.data(), experts_.size());
    pack_router(w);
    const bool by_expert = placement == Placement::kByExpert;
    const int64_t stored = w.num_experts + w.has_shared;
    pool.run([&](int32_t thread, int32_t team) {
        const Share experts = by_expert ? static_share(stored, thread, team) : Share{0, stored};
        const int32_t part = by_expert ? 0 : thread, parts = by_expert ? 1 : team;
        for (int64_t e = experts.begin; e < experts.end; ++e) {
            const std::size_t expert = static_cast<std::size_t>(e);
            pack_gate_up(mk, w, expert,
                         static_share(static_cast<int64_t>(shape.gate_up_panels), part, parts));
            pack_down(mk, w, expert,
                      static_share(static_cast<int64_t>(shape.down_panels), part, parts));
        }
    });
}

void PackedWeights::pack_gate_up(const moe_microkernels &mk, const moe_weights &w,
                                 std::size_t expert, Share panels) {
    const int8_t *channels[kMaxChannels] = {};
    const std::size_t half = mk.nr / 2;
    const std::size_t matrix = shape.d_model * shape.d_ff;
    const bool first = static_cast<std::size_t>(owners_[expert]) == expert;
    float *scales = gate_up_scales_.data() + expert * 2 * shape.h_padded;
    for (std::size_t p = static_cast<std::size_t>(panels.begin);
         p < static_cast<std::size_t>(panels.end); ++p) {
        for (std::size_t c = 0; c < half; ++c) {
            const std::size_t f = p * half + c;
            const bool inside = f < shape.d_ff;
            const std::size_t row = expert * matrix + f * shape.d_model;
            channels[c] = inside ? w.gate + row : nullptr;
            channels[half + c] = inside ? w.up + row : nullptr;
            const std::size_t scale = expert * shape.d_ff + f;
            scales[p * mk.nr + c] = inside ? w.gate_scale[scale] : 0.0f;
            scales[p * mk.nr + half + c] = inside ? w.up_scale[scale] : 0.0f;
        }
        if (first) {
            mk.pack_panel(shape.d_model, channels,
                          const_cast<uint8_t *>(gate_up_panel(expert, p)));
        }
    }
}

void PackedWeights::pack_down(const moe_microkernels &mk, const moe_weights &w, std::size_t expert,
                              Share panels) {
    const int8_t *channels[kMaxChannels] = {};
    const std::size_t matrix = shape.d_model * shape.d_ff;
    const bool first = static_cast<std::size_t>(owners_[expert]) == expert;
    float *scales = down_scales_.data() + expert * shape.d_padded;
    for (std::size_t p = static_cast<std::size_t>(panels.begin);
         p < static_cast<std::size_t>(panels.end); ++p) {
        for (std::size_t c = 0; c < mk.nr; ++c) {
            const std::size_t d = p * mk.nr + c;
            const bool inside = d < shape.d_model;
            channels[c] = inside ? w.down + expert * matrix + d * shape.d_ff : nullptr;
            scales[d] = inside ? w.down_scale[expert * shape.d_model + d] : 0.0f;
        }
        if (first) {
            moe_down_kernels(&mk)->pack_panel(shape.d_ff, channels,
                                              const_cast<uint8_t *>(down_panel(expert, p)));
        }
    }
}

void PackedWeights::pack_router(const moe_weights &w) {
    for (std::size_t p = 0; p < router_panels_; ++p) {
        for (std::size_t c = 0; c < router_nr_; ++c) {
            const std::size_t e = p * router_nr_ + c;
            const bool inside = e < static_cast<std::size_t>(w.num_experts);
            float *column = router_.data() + p * shape.d_model * router_nr_ + c;
            for (std::size_t d = 0; d < shape.d_model; ++d) {
                column[d * router_nr_] = inside ? w.router[e * shape.d_model + d] : 0.0f;
            }
        }
    }
}

int64_t PackedWeights::bytes() const {
    return experts_.bytes() + gate_up_scales_.bytes() + down_scales_.bytes() + router_.bytes();
}

} // namespace packed
} // namespace moe
