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
    AlignedArray<float> bias;     // (E) of the experts that route_few was given
};

// A bound of ||v||, infinite when the squares overflow.
double norm_bound(const moe_microkernels &mk, std::size_t n, const float *v);

// What the fp32 form of affinity + bias adds to the error of a score (see route.cpp).
double score_rounding(const RouterTable &table);

// The `kept` largest of score[0..count), indices in descending order, lower index first.
void best_scores(const moe_microkernels &mk, const float *score, int32_t count, int32_t kept,
                 int32_t *best);

// Chooses the experts of one token and their gates; the choice is that of route_token in routing.h.
// x: (D) f32; z: (E) f32 router outputs; ids, gates: (K).
void route_row(const moe_microkernels &mk, const RouterTable &table, const float *x, const float *z,
               RouteScratch &scratch, int32_t *ids, float *gates);

// The same when only `count` >= K experts, listed in ascending order, can be among the chosen: their
// router outputs are computed here. Sigmoid scores, one group, K <= kFastTopK, and a path with
// candidate kernels only. Returns false, with nothing chosen, when fp32 overflows.
bool route_few(const moe_microkernels &mk, const RouterTable &table, const float *x,
               const int32_t *experts, int32_t count, RouteScratch &scratch, int32_t *ids,
               float *gates);

} // namespace packed
} // namespace moe
