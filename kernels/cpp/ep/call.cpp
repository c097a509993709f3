// Dispatch, receive, complete, combine over windows.
#include "call.h"

#include <algorithm>
#include <cstring>

#include "place.h"
#include "route.h"

namespace moe {
namespace ep {

GroupCall::GroupCall(moe_ep_engine &of, const moe_ep_call &operands, const moe_ep_group &group,
                     moe_ep_record *notes)
    : engine(of), call(operands), exchange(operands, group), clock(of.rate.ticks_per_ns()),
      record(notes) {
    engine.state.grow(static_cast<std::size_t>(call.experts), exchange.local(), exchange.ranks());
    for (Scratch &scratch : engine.scratch) {
        scratch.runs.reserve(exchange.ranks());
    }
}

void GroupCall::route(int32_t *expand_idx) {
    CallState &state = engine.state;
    ep::route(call.active, call.bs, call.k, call.experts, call.expert_ids, RouteMethod::kFastest,
              expand_idx, state.counts.data());
    for (std::size_t e = 0; e < state.counts.size(); ++e) {
        state.remaining[e].store(state.counts[e], std::memory_order_relaxed);
    }
}

void GroupCall::dispatch(Worker &worker, const int32_t *expand_idx, bool publish_each) {
    const Lap lap(worker.recorder, MOE_EP_DISPATCH);
    CallState &state = engine.state;
    const auto slot = [&](std::size_t expert) { return exchange.slots_at_owner(expert); };
    // The thread that places an expert's last row has seen all others' rows by this counter.
    const auto placed = [&](std::size_t expert) {
        if (state.remaining[expert].fetch_sub(1, std::memory_order_acq_rel) == 1 && publish_each) {
            exchange.publish(expert, static_cast<uint32_t>(state.counts[expert]));
        }
    };
    for (int32_t t = next_token_++; t < call.active; t = next_token_++) {
        place_token(worker, call, static_cast<std::size_t>(t), expand_idx, exchange.slot_bytes(), slot,
                    placed);
    }
}

void GroupCall::publish_all() {
    for (std::size_t e = 0; e < engine.state.counts.size(); ++e) {
        exchange.publish(e, static_cast<uint32_t>(engine.state.counts[e]));
    }
}

bool GroupCall::receive(Worker &worker, std::size_t local_expert) {
    for (std::size_t source = 0; source < exchange.ranks(); ++source) {
        const int64_t count = exchange.wait_for_rows(source, local_expert, worker.recorder);
        if (count < 0) {
            return false;
        }
        engine.state.received[local_expert * exchange.ranks() + source] =
            static_cast<int32_t>(count);
    }
    return true;
}

bool GroupCall::receive_all(Worker &worker) {
    for (std::size_t l = 0; l < exchange.local(); ++l) {
        if (!receive(worker, l)) {
            return false;
        }
    }
    return true;
}

bool GroupCall::wait_for_all(Worker &worker) {
    for (std::size_t i = 0; i < exchange.local() * exchange.ranks(); ++i) {
        if (exchange.wait_for_rows(i % exchange.ranks(), i / exchange.ranks(), worker.recorder) < 0) {
            return false;
        }
    }
    return true;
}

void GroupCall::sum_counts(int64_t *group_list, int32_t *ep_send_count) {
    const std::size_t ranks = exchange.ranks();
    int32_t sum = 0;
    for (std::size_t l = 0; l < exchange.local(); ++l) {
        const int32_t before = sum;
        for (std::size_t source = 0; source < ranks; ++source) {
            sum += received(l, source);
            ep_send_count[l * ranks + source] = sum;
        }
        group_list[l] = engine.state.groups[l] = sum;
        call.expert_token_nums[l] = sum - before;
    }
}

std::size_t GroupCall::received_rows() const {
    std::size_t rows = 0;
    for (const int32_t count : engine.state.received) {
        rows += static_cast<std::size_t>(count);
    }
    return rows;
}

void GroupCall::list_runs(std::size_t local_expert, uint8_t *rows, std::vector<Run> &runs) const {
    runs.clear();
    for (std::size_t source = 0; source < exchange.ranks(); ++source) {
        const std::size_t count = static_cast<std::size_t>(received(local_expert, source));
        runs.push_back({exchange.slots_from(source, local_expert),
                        rows == nullptr ? exchange.rows_at_source(source, local_expert) : rows,
                        count});
        rows = rows == nullptr ? nullptr : rows + count * row_size();
    }
}

void GroupCall::gather(Worker &worker, int8_t *x1, float *x1_scale) {
    const Lap lap(worker.recorder, MOE_EP_GATHER);
    const std::size_t h = static_cast<std::size_t>(call.h), ranks = exchange.ranks();
    std::size_t row = 0, mine = next_gather_++;
    for (std::size_t run = 0; run < exchange.local() * ranks; ++run) {
        const std::size_t count = static_cast<std::size_t>(engine.state.received[run]);
        if (run == mine) {
            copy_run(h, exchange.slots_from(run % ranks, run / ranks), count, exchange.slot_bytes(),
                     x1 + row * h, x1_scale + row);
            worker.recorder.count(MOE_EP_GATHER, MOE_EP_MEMORY_READ, count * (h + kScaleBytes));
            worker.recorder.count(MOE_EP_GATHER, MOE_EP_MEMORY_WRITTEN, count * (h + kScaleBytes));
            mine = next_gather_++;
        }
        row += count;
    }
}

void GroupCall::send(Worker &worker, const void *y2, const int32_t *ep_send_count) {
    const Lap lap(worker.recorder, MOE_EP_SEND);
    const std::size_t runs = exchange.local() * exchange.ranks();
    for (std::size_t run = next_send_++; run < runs; run = next_send_++) {
        const std::size_t begin = run == 0 ? 0 : static_cast<std::size_t>(ep_send_count[run - 1]);
        const std::size_t end = static_cast<std::size_t>(ep_send_count[run]);
        const uint8_t *from = static_cast<const uint8_t *>(y2) + begin * row_size();
        uint8_t *to = exchange.rows_at_source(run % exchange.ranks(), run / exchange.ranks());
        for (std::size_t i = 0; i < end - begin; ++i) {
            std::memcpy(to + i * exchange.row_bytes(), from + i * row_size(), row_size());
        }
        worker.recorder.count(MOE_EP_SEND, MOE_EP_MEMORY_READ, (end - begin) * row_size());
        worker.recorder.count(MOE_EP_SEND, MOE_EP_MEMORY_WRITTEN, (end - begin) * row_size());
    }
}

void GroupCall::complete(Worker &worker) {
    exchange.publish_done();
    for (std::size_t owner = 0; owner < exchange.ranks(); ++owner) {
        if (!exchange.wait_for_done(owner, worker.recorder)) {
            return;
        }
    }
}

void GroupCall::combine(Worker &worker, const int32_t *expand_idx) {
    const Lap lap(worker.recorder, MOE_EP_COMBINE);
    const auto rows = [&](std::size_t expert) { return exchange.rows_from(expert); };
    for (int32_t t = next_sum_++; t < call.bs; t = next_sum_++) {
        // Rows beyond the active ones have no expandIdx: a sum of nothing.
        sum_token(worker, call, static_cast<std::size_t>(t), expand_idx, exchange.row_bytes(), rows);
    }
}

} // namespace ep
} // namespace moe
