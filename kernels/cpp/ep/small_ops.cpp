// The operator as separate calls, each from memory to memory, and the stages that other transports use.
#include <algorithm>
#include <vector>

#include "call.h"
#include "place.h"
#include "route.h"

namespace moe {
namespace ep {
namespace {

bool fits_group(const moe_ep_engine *engine, const moe_ep_call *call, const moe_ep_group *group) {
    return fits_call(engine, call) && group != nullptr && fits(*call, *group) &&
           engine->experts.local() * static_cast<std::size_t>(group->ranks) ==
               static_cast<std::size_t>(call->experts);
}

// No exception leaves the library; without memory nothing has been sent yet.
template <class Body> int32_t guarded(const Body &body) {
    try {
        return body();
    } catch (...) {
        return MOE_NO_MEMORY;
    }
}

void add_total(moe_ep_record *record, const CallClock &clock, uint64_t begin) {
    if (record != nullptr) {
        record->total_ns += clock.duration_ns(wait_ticks() - begin);
    }
}

// Runs body(worker, thread) on the team, if no other call holds the engine.
template <class Body>
int32_t run_team(moe_ep_engine &engine, moe_ep_record *record, const Body &body) {
    const Hold hold(engine);
    if (!hold) {
        return MOE_EP_BUSY;
    }
    const CallClock clock(engine.rate.ticks_per_ns());
    const uint64_t begin = wait_ticks();
    engine.pool.run([&](int32_t thread, int32_t) {
        Worker worker(engine, clock, record, thread);
        body(worker, thread);
    });
    add_total(record, clock, begin);
    return MOE_OK;
}

// Calls step(worker, expert, begin, rows) for every group; group_list NULL: all of the shared expert.
template <class Step>
int32_t for_each_group(moe_ep_engine *engine, int64_t rows, const int64_t *group_list,
                       moe_ep_record *record, const Step &step) {
    if (engine == nullptr || rows < 0 || (group_list == nullptr && !engine->experts.has_shared())) {
        return MOE_BAD_ARGUMENT;
    }
    const std::size_t local = engine->experts.local();
    if (group_list != nullptr && group_list[local - 1] != rows) {
        return MOE_BAD_ARGUMENT;
    }
    std::atomic<std::size_t> next{0};
    return run_team(*engine, record, [&](Worker &worker, int32_t) {
        if (group_list == nullptr) {
            if (next++ == 0) {
                step(worker, local, std::size_t{0}, static_cast<std::size_t>(rows));
            }
            return;
        }
        for (std::size_t l = next++; l < local; l = next++) {
            const int64_t begin = l == 0 ? 0 : group_list[l - 1];
            step(worker, l, static_cast<std::size_t>(begin),
                 static_cast<std::size_t>(group_list[l] - begin));
        }
    });
}

} // namespace
} // namespace ep
} // namespace moe

using moe::ep::Worker;

extern "C" int32_t moe_ep_dispatch(moe_ep_engine *engine, const moe_ep_call *call,
                                   const moe_ep_group *group, int64_t capacity, int8_t *x1,
                                   float *x1_scale, int32_t *expand_idx, int32_t *ep_send_count,
                                   int64_t *group_list, int64_t *rows, moe_ep_record *record) {
    return moe::ep::guarded([&]() -> int32_t {
        if (!moe::ep::fits_group(engine, call, group)) {
            return MOE_BAD_ARGUMENT;
        }
        const moe::ep::Hold hold(*engine);
        if (!hold) {
            return MOE_EP_BUSY;
        }
        moe::ep::GroupCall steps(*engine, *call, *group, record);
        const uint64_t begin = moe::wait_ticks();
        steps.route(expand_idx);
        engine->pool.run([&](int32_t thread, int32_t) {
            Worker worker(*engine, steps.clock, record, thread);
            steps.dispatch(worker, expand_idx, false);
            engine->pool.barrier(thread);
            if (thread == 0) {
                steps.publish_all();
                if (steps.receive_all(worker)) {
                    steps.sum_counts(group_list, ep_send_count);
                    *rows = static_cast<int64_t>(steps.received_rows());
                    if (*rows > capacity) {
                        steps.exchange.fail(MOE_BAD_ARGUMENT, -1, MOE_EP_GATHER);
                    }
                }
            }
            engine->pool.barrier(thread);
            if (steps.exchange.ok()) {
                steps.gather(worker, x1, x1_scale);
            }
        });
        moe::ep::add_total(record, steps.clock, begin);
        return steps.exchange.finish(record);
    });
}

extern "C" int32_t moe_ep_combine(moe_ep_engine *engine, const moe_ep_call *call,
                                  const moe_ep_group *group, const void *y2,
                                  const int32_t *expand_idx, const int32_t *ep_send_count,
                                  moe_ep_record *record) {
    return moe::ep::guarded([&]() -> int32_t {
        if (!moe::ep::fits_group(engine, call, group)) {
            return MOE_BAD_ARGUMENT;
        }
        const moe::ep::Hold hold(*engine);
        if (!hold) {
            return MOE_EP_BUSY;
        }
        moe::ep::GroupCall steps(*engine, *call, *group, record);
        const uint64_t begin = moe::wait_ticks();
        engine->pool.run([&](int32_t thread, int32_t) {
            Worker worker(*engine, steps.clock, record, thread);
            steps.send(worker, y2, ep_send_count);
            engine->pool.barrier(thread);
            if (thread == 0) {
                steps.complete(worker);
            }
            engine->pool.barrier(thread);
            if (steps.exchange.ok()) {
                steps.combine(worker, expand_idx);
            }
        });
        moe::ep::add_total(record, steps.clock, begin);
        return steps.exchange.finish(record);
    });
}

extern "C" int32_t moe_ep_send_rows(moe_ep_engine *engine, const moe_ep_call *call,
                                    const int32_t *expand_idx, uint8_t *const *bases,
                                    int64_t slot_bytes, moe_ep_record *record) {
    if (!moe::ep::fits_call(engine, call)) {
        return MOE_BAD_ARGUMENT;
    }
    std::atomic<int32_t> next{0};
    return moe::ep::run_team(*engine, record, [&](Worker &worker, int32_t) {
        const moe::ep::Lap lap(worker.recorder, MOE_EP_DISPATCH);
        for (int32_t t = next++; t < call->active; t = next++) {
            moe::ep::place_token(
                worker, *call, static_cast<std::size_t>(t), expand_idx,
                static_cast<std::size_t>(slot_bytes), [&](std::size_t e) { return bases[e]; },
                [](std::size_t) {});
        }
    });
}

extern "C" int32_t moe_ep_quantize(int64_t rows, int32_t h, int32_t dtype, const void *x,
                                   const float *smooth, int8_t *q, float *scale) {
    if (rows < 0 || h < 1 || (dtype != MOE_EP_BF16 && dtype != MOE_EP_FP16)) {
        return MOE_BAD_ARGUMENT;
    }
    const std::size_t width = static_cast<std::size_t>(h);
    try {
        std::vector<float> values(width);
        for (std::size_t i = 0; i < static_cast<std::size_t>(rows); ++i) {
            const uint8_t *row = static_cast<const uint8_t *>(x) + i * width * moe::ep::kElementBytes;
            scale[i] = moe::ep::quantize_x(width, dtype, row, smooth, values.data(), q + i * width);
        }
    } catch (...) {
        return MOE_NO_MEMORY;
    }
    return MOE_OK;
}

extern "C" int32_t moe_ep_gather(int32_t h, int32_t runs, const uint8_t *const *bases,
                                 const int32_t *counts, int64_t slot_bytes, int8_t *x1,
                                 float *x1_scale, moe_ep_record *record) {
    if (h < 1 || runs < 0) {
        return MOE_BAD_ARGUMENT;
    }
    const std::size_t width = static_cast<std::size_t>(h);
    const uint64_t begin = moe::wait_clock_ns();
    std::size_t row = 0;
    for (int32_t run = 0; run < runs; ++run) {
        const std::size_t count = static_cast<std::size_t>(counts[run]);
        moe::ep::copy_run(width, bases[run], count, static_cast<std::size_t>(slot_bytes),
                          x1 + row * width, x1_scale + row);
        row += count;
    }
    if (record != nullptr) {
        const int64_t took_ns = static_cast<int64_t>(moe::wait_clock_ns() - begin);
        const int64_t bytes = static_cast<int64_t>(row * (width + moe::ep::kScaleBytes));
        record->stage_ns[MOE_EP_GATHER] += took_ns;
        record->total_ns += took_ns;
        record->bytes[MOE_EP_GATHER][MOE_EP_MEMORY_READ] += bytes;
        record->bytes[MOE_EP_GATHER][MOE_EP_MEMORY_WRITTEN] += bytes;
    }
    return MOE_OK;
}

extern "C" int32_t moe_ep_gmm1(moe_ep_engine *engine, int64_t rows, const int64_t *group_list,
                               const int8_t *x1, int32_t *c1, moe_ep_record *record) {
    return moe::ep::for_each_group(
        engine, rows, group_list, record,
        [&](Worker &worker, std::size_t expert, std::size_t begin, std::size_t count) {
            const moe::ep::ExpertShape &shape = *engine->experts[expert].shape;
            moe::ep::multiply_first(worker, expert, count, x1 + begin * shape.h, c1 + begin * shape.n);
        });
}

extern "C" int32_t moe_ep_swiglu(moe_ep_engine *engine, int64_t rows, const int64_t *group_list,
                                 const int32_t *c1, const float *x1_scale, int8_t *x2,
                                 float *x2_scale, moe_ep_record *record) {
    return moe::ep::for_each_group(
        engine, rows, group_list, record,
        [&](Worker &worker, std::size_t expert, std::size_t begin, std::size_t count) {
            const moe::ep::ExpertShape &shape = *engine->experts[expert].shape;
            moe::ep::activate(worker, expert, count, c1 + begin * shape.n, x1_scale + begin,
                              x2 + begin * shape.m, x2_scale + begin);
        });
}

extern "C" int32_t moe_ep_gmm2(moe_ep_engine *engine, int64_t rows, const int64_t *group_list,
                               const int8_t *x2, const float *x2_scale, int32_t dtype, void *y2,
                               moe_ep_record *record) {
    return moe::ep::guarded([&]() -> int32_t {
        if (dtype != MOE_EP_BF16 && dtype != MOE_EP_FP16) {
            return MOE_BAD_ARGUMENT;
        }
        std::vector<uint8_t *> targets;
        if (engine != nullptr && rows > 0) {
            const std::size_t row_bytes = engine->experts.routed.h * moe::ep::kElementBytes;
            for (std::size_t i = 0; i < static_cast<std::size_t>(rows); ++i) {
                targets.push_back(static_cast<uint8_t *>(y2) + i * row_bytes);
            }
        }
        return moe::ep::for_each_group(
            engine, rows, group_list, record,
            [&](Worker &worker, std::size_t expert, std::size_t begin, std::size_t count) {
                const moe::ep::ExpertShape &shape = *engine->experts[expert].shape;
                moe::ep::multiply_second(worker, expert, count, x2 + begin * shape.m, x2_scale + begin,
                                         dtype, targets.data() + begin);
            });
    });
}

extern "C" int32_t moe_ep_expert_rows(moe_ep_engine *engine, int32_t expert, int32_t dtype,
                                      int32_t runs, const int32_t *counts,
                                      const uint8_t *const *inputs, int64_t slot_bytes,
                                      uint8_t *const *outputs, int64_t row_bytes,
                                      moe_ep_record *record) {
    return moe::ep::guarded([&]() -> int32_t {
        if (engine == nullptr || expert < 0 || runs < 0 ||
            static_cast<std::size_t>(expert) >=
                engine->experts.local() + (engine->experts.has_shared() ? 1 : 0) ||
            (dtype != MOE_EP_BF16 && dtype != MOE_EP_FP16)) {
            return MOE_BAD_ARGUMENT;
        }
        const moe::ep::Hold hold(*engine);
        if (!hold) {
            return MOE_EP_BUSY;
        }
        const moe::ep::CallClock clock(engine->rate.ticks_per_ns());
        const uint64_t begin = moe::wait_ticks();
        {
            Worker worker(*engine, clock, record, 0);
            std::vector<moe::ep::Run> &list = worker.scratch.runs;
            list.clear();
            for (int32_t i = 0; i < runs; ++i) {
                list.push_back({inputs[i], outputs[i], static_cast<std::size_t>(counts[i])});
            }
            moe::ep::apply_expert(worker, static_cast<std::size_t>(expert), dtype, list.data(),
                                  list.size(), static_cast<std::size_t>(slot_bytes),
                                  static_cast<std::size_t>(row_bytes));
        }
        moe::ep::add_total(record, clock, begin);
        return MOE_OK;
    });
}

extern "C" int32_t moe_ep_shared(moe_ep_engine *engine, const moe_ep_call *call,
                                 moe_ep_record *record) {
    if (!moe::ep::fits_call(engine, call)) {
        return MOE_BAD_ARGUMENT;
    }
    if (!engine->experts.has_shared()) {
        moe::ep::clear_share_output(*call);
        return MOE_OK;
    }
    return moe::ep::run_team(*engine, record, [&](Worker &worker, int32_t thread) {
        if (thread == 0) {
            moe::ep::apply_shared(worker, *call);
        }
    });
}

extern "C" int32_t moe_ep_weighted_sum(moe_ep_engine *engine, const moe_ep_call *call,
                                       const int32_t *expand_idx, const uint8_t *const *bases,
                                       int64_t row_bytes, moe_ep_record *record) {
    if (!moe::ep::fits_call(engine, call)) {
        return MOE_BAD_ARGUMENT;
    }
    std::atomic<int32_t> next{0};
    return moe::ep::run_team(*engine, record, [&](Worker &worker, int32_t) {
        const moe::ep::Lap lap(worker.recorder, MOE_EP_COMBINE);
        for (int32_t t = next++; t < call->bs; t = next++) {
            moe::ep::sum_token(worker, *call, static_cast<std::size_t>(t), expand_idx,
                               static_cast<std::size_t>(row_bytes),
                               [&](std::size_t e) { return bases[e]; });
        }
    });
}
