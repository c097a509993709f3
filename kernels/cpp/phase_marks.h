// Marks of the steps of a forward pass: one empty function a step, for what watches a program from
// outside and knows functions by their symbols (the emulator's plugin). A step begins when its
// function is called; after moe_phase_mark_none none is going on.
#pragma once

#include "moe_prof.h"

extern "C" {
void moe_phase_mark_router(void);
void moe_phase_mark_quantize(void);
void moe_phase_mark_bucket(void);
void moe_phase_mark_gate_up(void);
void moe_phase_mark_activation(void);
void moe_phase_mark_down(void);
void moe_phase_mark_combine(void);
void moe_phase_mark_none(void);
}

namespace moe {

inline void mark_phase(moe_phase phase) {
    switch (phase) {
    case MOE_PHASE_ROUTER:
        return moe_phase_mark_router();
    case MOE_PHASE_QUANTIZE:
        return moe_phase_mark_quantize();
    case MOE_PHASE_BUCKET:
        return moe_phase_mark_bucket();
    case MOE_PHASE_GATE_UP:
        return moe_phase_mark_gate_up();
    case MOE_PHASE_ACTIVATION:
        return moe_phase_mark_activation();
    case MOE_PHASE_DOWN:
        return moe_phase_mark_down();
    case MOE_PHASE_COMBINE:
        return moe_phase_mark_combine();
    case MOE_PHASE_COUNT:
        return moe_phase_mark_none();
    }
}

} // namespace moe
