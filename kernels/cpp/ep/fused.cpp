// The fused operator within a node: one call from tokens to weighted sums.
//
// Deep path (more than one expert a rank, overlap wanted): an expert's rows are published when they are
// all placed, its owner computes it when the rows of all sources are there, and its rows are stored into
// the sources' windows as they are computed. While one expert is computed, rows of the next ones arrive
// by other ranks' stores: receiving them is a look at their cells. Shallow path (one expert a rank): all
// rows, a wait for all, products into y2, then the rows go back. The shared expert comes first: its
// products cover the wait for other ranks' rows.
#include "call.h"
#include "place.h"

namespace moe {
namespace ep {
namespace {

class FusedCall {
public:
    FusedCall(moe_ep_engine &engine, const moe_ep_call &call, const moe_ep_group &group,
              const moe_ep_workspace &workspace, int32_t flags, moe_ep_record *record)
        : steps_(engine, call, group, record), engine_(engine), call_(call), space_(workspace),
          shallow_(steps_.exchange.local() == 1), overlap_((flags & MOE_EP_OVERLAP) != 0 && !shallow_),
          in_cache_((flags & MOE_EP_CACHE_FUSED) != 0),
          shared_(engine.experts.has_shared() ? static_cast<std::size_t>(call.bs) : 0),
          expand_idx_(at<int32_t>(workspace.expand_idx)),
          ep_send_count_(at<int32_t>(workspace.ep_send_count)) {}

    int32_t run();

private:
    template <class T> T *at(int64_t offset) const {
        return reinterpret_cast<T *>(space_.base + offset);
    }
    bool has_shared() const { return engine_.experts.has_shared(); }
    std::size_t local() const { return steps_.exchange.local(); }

    void work(int32_t thread);
    void compute_in_cache(Worker &worker);
    void compute_one(Worker &worker, std::size_t local_expert);
    void compute_in_workspace(Worker &worker, int32_t thread);
    void receive_into_workspace(Worker &worker, int32_t thread);
    void quantize_shared(Worker &worker);
    void list_targets(Worker &worker);
    void first_product(Worker &worker, std::size_t expert);
    void activation(Worker &worker, std::size_t expert);
    void second_product(Worker &worker, std::size_t expert);
    template <class Step> void for_each_expert(std::atomic<std::size_t> &next, const Step &step);

    // A (local or shared) expert's rows in the workspace: the shared expert's come first.
    struct Rows {
        std::size_t begin, count;
    };
    Rows rows_of(std::size_t expert) const;

    GroupCall steps_;
    moe_ep_engine &engine_;
    const moe_ep_call &call_;
    const moe_ep_workspace &space_;
    const bool shallow_, overlap_, in_cache_;
    const std::size_t shared_; // rows
    int32_t *const expand_idx_;
    int32_t *const ep_send_count_;
    std::atomic<std::size_t> next_expert_{0}, next_activation_{0}, next_second_{0};
};

int32_t FusedCall::run() {
    const uint64_t begin = wait_ticks();
    if (!in_cache_) {
        engine_.state.targets.reserve(shared_ + static_cast<std::size_t>(space_.rows));
    }
    steps_.route(expand_idx_);
    for (std::size_t e = 0; overlap_ && e < engine_.state.counts.size(); ++e) {
        if (engine_.state.counts[e] == 0) {
            steps_.exchange.publish(e, 0);
        }
    }
    engine_.pool.run([this](int32_t thread, int32_t) { work(thread); });
    if (steps_.record != nullptr) {
        steps_.record->total_ns += steps_.clock.duration_ns(wait_ticks() - begin);
    }
    return steps_.exchange.finish(steps_.record);
}

// By every thread of the team: all reach every barrier, also after an error.
void FusedCall::work(int32_t thread) {
    Worker worker(engine_, steps_.clock, steps_.record, thread);
    steps_.dispatch(worker, expand_idx_, overlap_);
    if (!overlap_) {
        engine_.pool.barrier(thread);
        if (thread == 0) {
            steps_.publish_all();
        }
    }
    if (in_cache_) {
        compute_in_cache(worker);
    } else {
        compute_in_workspace(worker, thread);
    }
    engine_.pool.barrier(thread);
    if (in_cache_ && steps_.exchange.ok() && thread == 0) {
        steps_.sum_counts(at<int64_t>(space_.group_list), ep_send_count_);
    }
    if (shallow_) {
        engine_.pool.barrier(thread);
        if (steps_.exchange.ok()) {
            steps_.send(worker, at<void>(space_.y2), ep_send_count_);
        }
        engine_.pool.barrier(thread);
    }
    if (steps_.exchange.ok() && thread == 0) {
        steps_.complete(worker);
    }
    engine_.pool.barrier(thread);
    if (steps_.exchange.ok()) {
        steps_.combine(worker, expand_idx_);
    }
}

void FusedCall::compute_in_cache(Worker &worker) {
    const std::size_t first = has_shared() ? 1 : 0;
    bool waited = overlap_;
    for (std::size_t task = next_expert_++; task < first + local(); task = next_expert_++) {
        if (task < first) {
            apply_shared(worker, call_);
            continue;
        }
        waited = waited || steps_.wait_for_all(worker);
        if (!waited || !steps_.receive(worker, task - first)) {
            return;
        }
        compute_one(worker, task - first);
    }
}

void FusedCall::compute_one(Worker &worker, std::size_t l) {
    std::vector<Run> &runs = worker.scratch.runs;
    steps_.list_runs(l, shallow_ ? at<uint8_t>(space_.y2) : nullptr, runs);
    if (shallow_ && steps_.received_rows() > static_cast<std::size_t>(space_.rows)) {
        steps_.exchange.fail(MOE_BAD_ARGUMENT, -1, MOE_EP_GMM2);
        return;
    }
    apply_expert(worker, l, call_.dtype, runs.data(), runs.size(), steps_.exchange.slot_bytes(),
                 shallow_ ? steps_.row_size() : steps_.exchange.row_bytes());
}

// Without cache fusion: each stage over all rows before the next, through the workspace.
void FusedCall::compute_in_workspace(Worker &worker, int32_t thread) {
    receive_into_workspace(worker, thread);
    engine_.pool.barrier(thread);
    if (steps_.exchange.ok()) {
        for_each_expert(next_expert_, [&](std::size_t e) { first_product(worker, e); });
    }
    engine_.pool.barrier(thread);
    if (steps_.exchange.ok()) {
        for_each_expert(next_activation_, [&](std::size_t e) { activation(worker, e); });
    }
    engine_.pool.barrier(thread);
    if (steps_.exchange.ok()) {
        for_each_expert(next_second_, [&](std::size_t e) { second_product(worker, e); });
    }
}

void FusedCall::receive_into_workspace(Worker &worker, int32_t thread) {
    if (thread == 0) {
        quantize_shared(worker);
        if (steps_.receive_all(worker)) {
            if (steps_.received_rows() > static_cast<std::size_t>(space_.rows)) {
                steps_.exchange.fail(MOE_BAD_ARGUMENT, -1, MOE_EP_GATHER);
            } else {
                steps_.sum_counts(at<int64_t>(space_.group_list), ep_send_count_);
                list_targets(worker);
            }
        }
    }
    engine_.pool.barrier(thread);
    if (steps_.exchange.ok()) {
        steps_.gather(worker, at<int8_t>(space_.x1) + shared_ * static_cast<std::size_t>(call_.h),
                      at<float>(space_.x1_scale) + shared_);
    }
}

void FusedCall::quantize_shared(Worker &worker) {
    const Lap lap(worker.recorder, MOE_EP_SHARED, static_cast<int32_t>(local()));
    const std::size_t h = static_cast<std::size_t>(call_.h), row = steps_.row_size();
    for (std::size_t t = 0; t < shared_; ++t) {
        at<float>(space_.x1_scale)[t] =
            quantize_x(h, call_.dtype, static_cast<const uint8_t *>(call_.x) + t * row,
                       call_.share_smooth, worker.scratch.values.data(),
                       at<int8_t>(space_.x1) + t * h);
    }
    worker.recorder.count(MOE_EP_SHARED, MOE_EP_MEMORY_READ, shared_ * row);
    worker.recorder.count(MOE_EP_SHARED, MOE_EP_MEMORY_WRITTEN, shared_ * (h + kScaleBytes));
}

// Where every row goes: share_output, then y2 or the sources' windows.
void FusedCall::list_targets(Worker &worker) {
    std::vector<uint8_t *> &targets = engine_.state.targets;
    targets.clear();
    for (std::size_t t = 0; t < shared_; ++t) {
        targets.push_back(static_cast<uint8_t *>(call_.share_output) + t * steps_.row_size());
    }
    const std::size_t step = shallow_ ? steps_.row_size() : steps_.exchange.row_bytes();
    for (std::size_t l = 0; l < local(); ++l) {
        steps_.list_runs(l, shallow_ ? at<uint8_t>(space_.y2) : nullptr, worker.scratch.runs);
        for (const Run &run : worker.scratch.runs) {
            for (std::size_t i = 0; i < run.count; ++i) {
                targets.push_back(run.rows + i * step);
            }
        }
    }
}

// The shared expert first; threads share the experts out.
template <class Step>
void FusedCall::for_each_expert(std::atomic<std::size_t> &next, const Step &step) {
    const std::size_t first = has_shared() ? 1 : 0;
    for (std::size_t task = next++; task < first + local(); task = next++) {
        step(task < first ? local() : task - first);
    }
}

FusedCall::Rows FusedCall::rows_of(std::size_t expert) const {
    if (expert == local()) {
        return {0, shared_};
    }
    const std::vector<int64_t> &groups = engine_.state.groups;
    const std::size_t begin = expert == 0 ? 0 : static_cast<std::size_t>(groups[expert - 1]);
    return {shared_ + begin, static_cast<std::size_t>(groups[expert]) - begin};
}

void FusedCall::first_product(Worker &worker, std::size_t expert) {
    const Rows rows = rows_of(expert);
    const std::size_t n = engine_.experts.routed.n, capacity = static_cast<std::size_t>(space_.rows);
    int32_t *c = at<int32_t>(space_.swap);
    c += expert == local() ? capacity * n : (rows.begin - shared_) * n;
    multiply_first(worker, expert, rows.count,
                   at<int8_t>(space_.x1) + rows.begin * static_cast<std::size_t>(call_.h), c,
                   expert == local() ? MOE_EP_SHARED : MOE_EP_GMM1);
}

void FusedCall::activation(Worker &worker, std::size_t expert) {
    const Rows rows = rows_of(expert);
    const std::size_t n = engine_.experts.routed.n, capacity = static_cast<std::size_t>(space_.rows);
    const bool shared = expert == local();
    const int32_t *c = at<int32_t>(space_.swap);
    c += shared ? capacity * n : (rows.begin - shared_) * n;
    int8_t *q2 = at<int8_t>(space_.x2);
    q2 += shared ? 0
                 : shared_ * engine_.experts.shared.m +
                       (rows.begin - shared_) * engine_.experts.routed.m;
    activate(worker, expert, rows.count, c, at<float>(space_.x1_scale) + rows.begin, q2,
             at<float>(space_.x2_scale) + rows.begin, shared ? MOE_EP_SHARED : MOE_EP_SWIGLU);
}

void FusedCall::second_product(Worker &worker, std::size_t expert) {
    const Rows rows = rows_of(expert);
    const bool shared = expert == local();
    const int8_t *q2 = at<int8_t>(space_.x2);
    q2 += shared ? 0
                 : shared_ * engine_.experts.shared.m +
                       (rows.begin - shared_) * engine_.experts.routed.m;
    multiply_second(worker, expert, rows.count, q2, at<float>(space_.x2_scale) + rows.begin,
                    call_.dtype, engine_.state.targets.data() + rows.begin,
                    shared ? MOE_EP_SHARED : MOE_EP_GMM2);
}

} // namespace
} // namespace ep
} // namespace moe

extern "C" int32_t moe_ep_fused(moe_ep_engine *engine, const moe_ep_call *call,
                                const moe_ep_group *group, const moe_ep_workspace *workspace,
                                int32_t flags, moe_ep_record *record) {
    if (!moe::ep::fits_call(engine, call) || group == nullptr || workspace == nullptr ||
        !moe::ep::fits(*call, *group) ||
        engine->experts.local() * static_cast<std::size_t>(group->ranks) !=
            static_cast<std::size_t>(call->experts)) {
        return MOE_BAD_ARGUMENT;
    }
    const moe::ep::Hold hold(*engine);
    if (!hold) {
        return MOE_EP_BUSY;
    }
    try {
        const int32_t status =
            moe::ep::FusedCall(*engine, *call, *group, *workspace, flags, record).run();
        if (status == MOE_OK && !engine->experts.has_shared()) {
            moe::ep::clear_share_output(*call);
        }
        return status;
    } catch (...) {
        moe_ep_abort(group);
        return MOE_INTERNAL;
    }
}
