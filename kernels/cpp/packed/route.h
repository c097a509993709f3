// The exact choice of experts from scores in any summation order, without visiting every expert
// twice.
#pragma once

#include <cstdint>

#include "../aligned_array.h"
#include "../routing.h"
#include "microkernels.h"

namespace moe {
namespace packed {

constexpr int32_t kFastTopK = 32; // above it, routing.h's partial sort is the better algorithm

// Buffers of one thread.
struct RouteScratch {
    explicit RouteScratch(const moe_weights &w);
    void zero();
    int64_t bytes() const;

    RouterScratch exact;
    AlignedArray<float> affinity; // (E)
    AlignedArray<float> score;    // (E) affinity + bias
};

// Chooses the experts of one token and their gates; the choice is that of route_token in routing.h.
// x: (D) f32; z: (E) f32 router outputs; ids, gates: (K).
void route_row(const moe_microkernels &mk, const RouterTable &table, const float *x, const float *z,
               RouteScratch &scratch, int32_t *ids, float *gates);

} // namespace packed
} // namespace moe
