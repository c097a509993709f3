// The steps of a call that communicate, each by all threads of a rank's team: dispatch, waiting for rows,
// completion, weighted sum. The fused operator and the two small ops are made of them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "block.h"
#include "exchange.h"

namespace moe {
namespace ep {

class GroupCall {
public:
    GroupCall(moe_ep_engine &engine, const moe_ep_call &call, const moe_ep_group &group,
              moe_ep_record *record);

    // expandIdx into expand_idx (B, k), and what each expert still waits for. By one thread.
    void route(int32_t *expand_idx);
    // Tokens to their owners. publish_each: an expert's rows as soon as they are all placed; else all of
    // them after the last one, by publish_all.
    void dispatch(Worker &worker, const int32_t *expand_idx, bool publish_each);
    void publish_all();
    // Waits for all sources' rows of one local expert and notes their counts; false: stop.
    bool receive(Worker &worker, std::size_t local_expert);
    // The same for all local experts; by one thread at a time.
    bool receive_all(Worker &worker);
    // Waits as receive_all, notes nothing.
    bool wait_for_all(Worker &worker);
    // Once all is received: cumulative and plain counts, state.groups too. By one thread.
    void sum_counts(int64_t *group_list, int32_t *ep_send_count);
    // Runs of a local expert's slots, which go back to `rows` one after another, or, where that is NULL, to
    // their sources' windows.
    void list_runs(std::size_t local_expert, uint8_t *rows, std::vector<Run> &runs) const;
    // What this rank's experts received, to x1 and x1_scale in receive order; runs are shared out.
    void gather(Worker &worker, int8_t *x1, float *x1_scale);
    // Rows y2 in receive order to their sources; runs are shared out. ep_send_count: (L, P).
    void send(Worker &worker, const void *y2, const int32_t *ep_send_count);
    // All rows back: say so, wait for all owners. By one thread.
    void complete(Worker &worker);
    // Weighted sums of the active tokens, zeros for the others.
    void combine(Worker &worker, const int32_t *expand_idx);

    int32_t received(std::size_t local_expert, std::size_t source) const {
        return engine.state.received[local_expert * exchange.ranks() + source];
    }
    std::size_t received_rows() const;
    std::size_t row_size() const { return static_cast<std::size_t>(call.h) * 2; } // bytes, of a row back

    moe_ep_engine &engine;
    const moe_ep_call &call;
    Exchange exchange;
    const CallClock clock;
    moe_ep_record *const record;

private:
    std::atomic<int32_t> next_token_{0}, next_sum_{0};
    std::atomic<std::size_t> next_gather_{0}, next_send_{0};
};

} // namespace ep
} // namespace moe
