// The forward of one token, its panels shared out among threads.
#include "single_token.h"

#include <algorithm>

#include "../share.h"
#include "router_rows.h"

namespace moe {
namespace packed {
namespace {

// Up to this many router weights every thread computes all of them (2 us): cheaper than a barrier.
constexpr int64_t kOwnRouterWeights = 64 * 1024;

// Layers whose experts take no more are multiplied as ones that L2 holds. Measured on AMD Zen 4 (1 MiB
// of L2, avx2): 1.7 MB with another token each time 506 us against 528, 3.3 MB 1018 / 1004.
constexpr std::size_t kNearBytes = std::size_t{2} << 20;

bool lies_near(const moe_weights &w, const PackedWeights &packed) {
    const std::size_t experts = static_cast<std::size_t>(w.num_experts + w.has_shared);
    return experts * packed.shape.expert_bytes <= kNearBytes;
}

std::size_t line_of_floats(std::size_t n) { return (n + 15) / 16 * 16; }

} // namespace

struct SingleToken::Lane {
    Lane(const moe_microkernels &mk, const moe_weights &w, const PackedWeights &packed,
         std::size_t slots)
        : route(w), z(packed.router_panels() * mk.router_nr),
          x_row(mk.row_bytes(packed.shape.d_model)), h_row_bytes(mk.row_bytes(packed.shape.d_ff)),
          h_row(slots * h_row_bytes),
          acc(std::max(2 * packed.shape.h_padded, packed.shape.d_padded)),
          part(slots * packed.shape.d_padded), h_scale(slots),
          ids(static_cast<std::size_t>(w.top_k)), gates(ids.size() + 1), parts(slots) {
        route.zero();
        z.zero();
        x_row.zero();
        h_row.zero();
        acc.zero();
        part.zero();
        h_scale.zero();
        ids.zero();
        gates.zero();
        parts.zero();
    }
    int64_t bytes() const {
        return route.bytes() + z.bytes() + x_row.bytes() + h_row.bytes() + acc.bytes() +
               part.bytes() + h_scale.bytes() + ids.bytes() + gates.bytes() +
               parts.bytes();
    }

    RouteScratch route;
    AlignedArray<float> z;
    AlignedArray<uint8_t> x_row;
    float x_scale = 0.0f;
    std::size_t h_row_bytes;
    AlignedArray<uint8_t> h_row; // (slots, h_row_bytes)
    AlignedArray<int32_t> acc;
    AlignedArray<float> part; // (slots, d_padded): outputs of the experts, own channels only
    AlignedArray<float> h_scale;
    AlignedArray<int32_t> ids;
    AlignedArray<float> gates; // (slots): 1 for the shared expert
    AlignedArray<const float *> parts; // (slots): the rows of part
};

SingleToken::SingleToken(const Layer &layer, ThreadPool &pool, PanelShare panel_share)
    : mk_(layer.mk), w_(layer.w), packed_(layer.packed), table_(layer.table), pool_(pool),
      timers_(layer.timers), panel_share_(panel_share),
      near_(lies_near(w_, packed_)),
      slots_(static_cast<std::size_t>(w_.top_k + w_.has_shared)),
      largest_stride_(line_of_floats(slots_)), z_(packed_.router_panels() * mk_.router_nr),
      h_(slots_ * packed_.shape.h_padded),
      largest_(static_cast<std::size_t>(pool.threads()) * largest_stride_) {
    z_.zero();
    h_.zero();
    largest_.zero();
    lanes_.reserve(static_cast<std::size_t>(pool.threads()));
    for (int32_t i = 0; i < pool.threads(); ++i) {
        lanes_.emplace_back(mk_, w_, packed_, slots_);
    }
}

SingleToken::~SingleToken() = default;

int64_t SingleToken::bytes() const {
    return z_.bytes() + h_.bytes() + largest_.bytes() +
           lanes_.front().bytes() * static_cast<int64_t>(lanes_.size());
}

void SingleToken::run(int32_t thread, int32_t team, const float *x, float *y, int32_t *ids,
                      float *gates) {
    Lane &lane = lanes_[static_cast<std::size_t>(thread)];
    route(lane, thread, team, x);
    if (thread == 0) {
        std::copy_n(lane.ids.data(), w_.top_k, ids);
        std::copy_n(lane.gates.data() + w_.has_shared, w_.top_k, gates);
    }
    timers_.enter(thread, MOE_PHASE_QUANTIZE);
    lane.x_scale =
        mk_.quantize(packed_.shape.d_model, x, mk_.absmax(packed_.shape.d_model, x),
                     lane.x_row.data());
    gate_up(lane, thread, team);
    if (team > 1) {
        timers_.leave(thread);
        pool_.barrier(thread);
    }
    timers_.enter(thread, MOE_PHASE_ACTIVATION);
    activate(lane, team);
    down(lane, thread, team, x, y);
    timers_.leave(thread);
}

void SingleToken::route(Lane &lane, int32_t thread, int32_t team, const float *x) {
    timers_.enter(thread, MOE_PHASE_ROUTER);
    const std::size_t panels = packed_.router_panels();
    float *z = lane.z.data();
    if (team == 1 || int64_t{w_.num_experts} * w_.d_model <= kOwnRouterWeights) {
        router_row(mk_, packed_, x, 0, panels, z);
    } else {
        z = z_.data();
        const Share share = static_share(static_cast<int64_t>(panels), thread, team);
        router_row(mk_, packed_, x, static_cast<std::size_t>(share.begin),
                   static_cast<std::size_t>(share.end), z);
        timers_.leave(thread);
        pool_.barrier(thread);
        timers_.enter(thread, MOE_PHASE_ROUTER);
    }
    lane.gates[0] = 1.0f;
    route_row(mk_, table_, x, z, lane.route, lane.ids.data(), lane.gates.data() + w_.has_shared);
}

std::size_t SingleToken::expert_at(const Lane &lane, std::size_t slot) const {
    const std::size_t shared = static_cast<std::size_t>(w_.has_shared);
    return static_cast<std::size_t>(slot < shared ? w_.num_experts : lane.ids[slot - shared]);
}

void SingleToken::multiply_row(const moe_microkernels &mk, const void *row, const Panels &panels,
                               int32_t *acc) const {
    if (near_ && mk.gemm_near != nullptr) {
        mk.gemm_near(panels.k, panels.count, panels.bytes_each, &row, panels.first, acc, 0);
    } else {
        multiply(mk, &row, 1, panels, acc, 0);
    }
}

void SingleToken::gate_up(Lane &lane, int32_t thread, int32_t team) {
    const std::size_t panels = packed_.shape.gate_up_panels;
    float *largest = largest_.data() + static_cast<std::size_t>(thread) * largest_stride_;
    std::fill(largest, largest + slots_, 0.0f);
    if (panel_share_ == PanelShare::kSamePanels) {
        const Share share = static_share(static_cast<int64_t>(panels), thread, team);
        for (std::size_t slot = 0; slot < slots_ && share.begin < share.end; ++slot) {
            if (slot == slots_ / 2) {
                pool_.expect_arrival(thread);
            }
            gate_up_of(lane, thread, slot, static_cast<std::size_t>(share.begin),
                       static_cast<std::size_t>(share.end));
        }
        return;
    }
    // A thread's part may begin and end inside an expert.
    const Share share = static_share(static_cast<int64_t>(slots_ * panels), thread, team);
    std::size_t item = static_cast<std::size_t>(share.begin);
    const std::size_t end = static_cast<std::size_t>(share.end);
    while (item < end) {
        const std::size_t first = item % panels;
        const std::size_t last = std::min(panels, first + (end - item));
        gate_up_of(lane, thread, item / panels, first, last);
        item += last - first;
    }
}

// h and its largest value of panels [first, last) of a slot's expert.
void SingleToken::gate_up_of(Lane &lane, int32_t thread, std::size_t slot, std::size_t first,
                             std::size_t last) {
    const ExpertShape &shape = packed_.shape;
    const std::size_t expert = expert_at(lane, slot);
    timers_.enter(thread, MOE_PHASE_GATE_UP);
    multiply_row(mk_, lane.x_row.data(), packed_.gate_up(expert).part(first, last - first),
                 lane.acc.data());
    timers_.enter(thread, MOE_PHASE_ACTIVATION);
    largest_[static_cast<std::size_t>(thread) * largest_stride_ + slot] =
        mk_.swiglu(last - first, lane.acc.data(),
                   packed_.gate_up_scales(expert) + first * mk_.nr, lane.x_scale,
                   h_.data() + slot * shape.h_padded + first * (mk_.nr / 2));
}

// Every thread quantizes all h for itself: less work than handing them over.
void SingleToken::activate(Lane &lane, int32_t team) {
    const ExpertShape &shape = packed_.shape;
    for (std::size_t slot = 0; slot < slots_; ++slot) {
        float largest = 0.0f;
        for (int32_t t = 0; t < team; ++t) {
            largest = std::max(largest,
                               largest_[static_cast<std::size_t>(t) * largest_stride_ + slot]);
        }
        lane.h_scale[slot] =
            mk_.quantize(shape.d_ff, h_.data() + slot * shape.h_padded, largest,
                         lane.h_row.data() + slot * lane.h_row_bytes);
    }
}

// A thread's part of the output channels, of every expert, so that it can also combine them.
void SingleToken::down(Lane &lane, int32_t thread, int32_t team, const float *x, float *y) {
    const ExpertShape &shape = packed_.shape;
    const Share share = static_share(static_cast<int64_t>(shape.down_panels), thread, team);
    const std::size_t first = static_cast<std::size_t>(share.begin);
    const std::size_t last = static_cast<std::size_t>(share.end);
    if (first == last) {
        return;
    }
    const std::size_t channel = first * mk_.nr;
    const float **parts = lane.parts.data();
    timers_.enter(thread, MOE_PHASE_DOWN);
    for (std::size_t slot = 0; slot < slots_; ++slot) {
        if (slot == slots_ / 2) {
            pool_.expect_arrival(thread);
        }
        const std::size_t expert = expert_at(lane, slot);
        multiply_row(*moe_down_kernels(&mk_), lane.h_row.data() + slot * lane.h_row_bytes,
                     packed_.down(expert).part(first, last - first), lane.acc.data());
        float *part = lane.part.data() + slot * shape.d_padded;
        mk_.dequantize(1, (last - first) * mk_.nr, lane.acc.data(), 0,
                       packed_.down_scales(expert) + channel, &lane.h_scale[slot], 0, &part);
        parts[slot] = part;
    }
    timers_.enter(thread, MOE_PHASE_COMBINE);
    mk_.combine(std::min(last * mk_.nr, shape.d_model) - channel,
                w_.has_residual ? x + channel : nullptr, parts, lane.gates.data(), slots_,
                y + channel);
}

} // namespace packed
} // namespace moe
