// The layer for one token, expert by expert: the reference every other variant is held against.
//
// The fp32 order is the specification's; products are accumulated in int32, exactly. The file is
// compiled several times with different flags (see reference_plan.h), hence the internal linkage.
#pragma once

#include <cstdint>

#include "aligned_array.h"
#include "moe_prof.h"
#include "phase_timer.h"
#include "quantize.h"
#include "routing.h"
#include "step.h"
#include "swiglu.h"

namespace moe {

// Buffers of one thread for one token.
struct TokenScratch {
    explicit TokenScratch(const moe_weights &w)
        : router(w), x_q(static_cast<std::size_t>(w.d_model)),
          acc_gate(static_cast<std::size_t>(w.d_ff)), acc_up(acc_gate.size()), h(acc_gate.size()),
          h_q(acc_gate.size()), acc_down(x_q.size()) {}

    void zero() {
        router.zero();
        x_q.zero();
        acc_gate.zero();
        acc_up.zero();
        h.zero();
        h_q.zero();
        acc_down.zero();
    }
    int64_t bytes() const {
        return router.bytes() + x_q.bytes() + acc_gate.bytes() + acc_up.bytes() + h.bytes() +
               h_q.bytes() + acc_down.bytes();
    }

    RouterScratch router;
    AlignedArray<int8_t> x_q;       // (D)
    AlignedArray<int32_t> acc_gate; // (H)
    AlignedArray<int32_t> acc_up;   // (H)
    AlignedArray<float> h;          // (H)
    AlignedArray<int8_t> h_q;       // (H)
    AlignedArray<int32_t> acc_down; // (D)
};

// acc[r] = sum over k of matrix[r, k] * vector[k]; matrix: (rows, size) int8.
MOE_STEP static void int8_products(const int8_t *matrix, const int8_t *vector, int32_t rows,
                                   int32_t size, int32_t *acc) {
    for (int32_t r = 0; r < rows; ++r) {
        const int8_t *row = matrix + static_cast<int64_t>(r) * size;
        int32_t sum = 0;
        for (int32_t k = 0; k < size; ++k) {
            sum += static_cast<int32_t>(row[k]) * vector[k];
        }
        acc[r] = sum;
    }
}

// Adds one expert's output to y. times_gate: a routed expert, whose output is multiplied by `gate`.
static void add_expert(const moe_weights &w, int64_t expert, float x_scale, bool times_gate,
                       float gate, TokenScratch &scratch, float *y, PhaseTimers &timers,
                       int32_t thread) {
    const int64_t matrix = static_cast<int64_t>(w.d_model) * w.d_ff;
    timers.enter(thread, MOE_PHASE_GATE_UP);
    int8_products(w.gate + expert * matrix, scratch.x_q.data(), w.d_ff, w.d_model,
                  scratch.acc_gate.data());
    int8_products(w.up + expert * matrix, scratch.x_q.data(), w.d_ff, w.d_model,
                  scratch.acc_up.data());
    timers.enter(thread, MOE_PHASE_ACTIVATION);
    swiglu_row(scratch.acc_gate.data(), scratch.acc_up.data(), w.gate_scale + expert * w.d_ff,
               w.up_scale + expert * w.d_ff, x_scale, w.d_ff, scratch.h.data());
    const float h_scale = quantize_row(scratch.h.data(), w.d_ff, scratch.h_q.data());
    timers.enter(thread, MOE_PHASE_DOWN);
    int8_products(w.down + expert * matrix, scratch.h_q.data(), w.d_model, w.d_ff,
                  scratch.acc_down.data());
    timers.enter(thread, MOE_PHASE_COMBINE);
    const float *down_scale = w.down_scale + expert * w.d_model;
    for (int32_t d = 0; d < w.d_model; ++d) {
        const float out = static_cast<float>(scratch.acc_down[d]) * (h_scale * down_scale[d]);
        y[d] += times_gate ? gate * out : out;
    }
}

// x, y: (D) f32; ids, gates: (K), written.
static void forward_token(const moe_weights &w, const RouterTable &table, const float *x, float *y,
                          TokenScratch &scratch, int32_t *ids, float *gates, PhaseTimers &timers,
                          int32_t thread) {
    timers.enter(thread, MOE_PHASE_ROUTER);
    router_dots(table, x, scratch.router.z.data());
    route_token(table, x, scratch.router, ids, gates);
    timers.enter(thread, MOE_PHASE_QUANTIZE);
    const float x_scale = quantize_row(x, w.d_model, scratch.x_q.data());
    timers.enter(thread, MOE_PHASE_COMBINE);
    for (int32_t d = 0; d < w.d_model; ++d) {
        y[d] = w.has_residual ? x[d] : 0.0f;
    }
    if (w.has_shared) {
        add_expert(w, w.num_experts, x_scale, false, 1.0f, scratch, y, timers, thread);
    }
    for (int32_t k = 0; k < w.top_k; ++k) {
        add_expert(w, ids[k], x_scale, true, gates[k], scratch, y, timers, thread);
    }
    timers.leave(thread);
}

} // namespace moe
