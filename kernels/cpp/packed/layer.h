// What every way through a packed layer needs: the weights in their packed form, the tables made from
// them at prepare, and the timers.
#pragma once

#include "../phase_timer.h"
#include "packed_weights.h"
#include "router_candidates.h"

namespace moe {
namespace packed {

// References to what a plan owns.
struct Layer {
    const moe_microkernels &mk;
    const moe_weights &w;
    const PackedWeights &packed;
    const RouterTable &table;
    const CandidateRouter &candidates;
    PhaseTimers &timers;
};

} // namespace packed
} // namespace moe
