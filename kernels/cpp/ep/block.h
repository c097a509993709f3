// The products over a block of rows of one expert: fused, with intermediates in the thread's scratch, and
// stage by stage through memory. Both walk the packed weights once per block and call the same kernels.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine.h"
#include "recorder.h"

namespace moe {
namespace ep {

// A thread at work in a call.
struct Worker {
    Worker(moe_ep_engine &of, const CallClock &clock, moe_ep_record *record, int32_t thread)
        : engine(of), mk(of.mk), scratch(of.scratch[static_cast<std::size_t>(thread)]),
          recorder(clock, record, thread) {}
    ~Worker() { scratch.tiles.release(mk); }

    moe_ep_engine &engine;
    const moe_microkernels &mk;
    Scratch &scratch;
    Recorder recorder;
};

// Steps 2 to 5 of all rows of the runs, fused. expert: index in engine.experts.
void apply_expert(Worker &worker, std::size_t expert, int32_t dtype, const Run *runs,
                  std::size_t run_count, std::size_t slot_bytes, std::size_t row_bytes);

// Steps 1 to 5 of all B rows with the shared expert, fused.
void apply_shared(Worker &worker, const moe_ep_call &call);

// One expert's rows through memory: q (rows, h) to c (rows, n); c to q2 (rows, m) and s2; q2 to rows at
// out[i]. stage: under which the work is noted, MOE_EP_STAGES: its own.
void multiply_first(Worker &worker, std::size_t expert, std::size_t rows, const int8_t *q, int32_t *c,
                    moe_ep_stage stage = MOE_EP_STAGES);
void activate(Worker &worker, std::size_t expert, std::size_t rows, const int32_t *c, const float *s,
              int8_t *q2, float *s2, moe_ep_stage stage = MOE_EP_STAGES);
void multiply_second(Worker &worker, std::size_t expert, std::size_t rows, const int8_t *q2,
                     const float *s2, int32_t dtype, uint8_t *const *out,
                     moe_ep_stage stage = MOE_EP_STAGES);

} // namespace ep
} // namespace moe
