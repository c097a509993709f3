// What one thread notes of a call: time, bytes and spans by stage, added to the caller's record at the
// end.
#pragma once

#include <cstddef>
#include <cstdint>

#include "../wait_policy.h"
#include "moe_ep.h"

namespace moe {
namespace ep {

// Turns ticks into the monotonic clock's time; made at the begin of a call.
class CallClock {
public:
    explicit CallClock(double ticks_per_ns)
        : ns_per_tick_(1.0 / ticks_per_ns), ticks_(wait_ticks()), ns_(wait_clock_ns()) {}
    int64_t duration_ns(uint64_t ticks) const {
        return static_cast<int64_t>(static_cast<double>(ticks) * ns_per_tick_);
    }
    int64_t time_ns(uint64_t ticks) const {
        return static_cast<int64_t>(ns_) + duration_ns(ticks - ticks_);
    }

private:
    double ns_per_tick_;
    uint64_t ticks_;
    uint64_t ns_;
};

class Recorder {
public:
    // record may be NULL.
    Recorder(const CallClock &clock, moe_ep_record *record, int32_t thread)
        : clock_(clock), record_(record), thread_(thread) {}
    Recorder(const Recorder &) = delete;
    Recorder &operator=(const Recorder &) = delete;
    ~Recorder() {
        if (record_ == nullptr) {
            return;
        }
        for (int stage = 0; stage < MOE_EP_STAGES; ++stage) {
            add(&record_->stage_ns[stage], clock_.duration_ns(ticks_[stage]));
            for (int traffic = 0; traffic < MOE_EP_TRAFFICS; ++traffic) {
                add(&record_->bytes[stage][traffic], bytes_[stage][traffic]);
            }
        }
    }

    void count(moe_ep_stage stage, moe_ep_traffic traffic, std::size_t bytes) {
        bytes_[stage][traffic] += static_cast<int64_t>(bytes);
    }

    void note(moe_ep_stage stage, int32_t expert, int32_t peer, uint64_t begin, uint64_t end) {
        ticks_[stage] += end - begin;
        if (record_ == nullptr || record_->spans == nullptr) {
            return;
        }
        const int64_t index = __atomic_fetch_add(&record_->span_count, 1, __ATOMIC_RELAXED);
        if (index < record_->span_capacity) {
            record_->spans[index] = {stage, expert, thread_, peer, clock_.time_ns(begin),
                                     clock_.time_ns(end)};
        }
    }

    // group: 0 while waiting for dispatch, 1 for combine.
    void note_wait(int32_t group, int32_t peer, int32_t ranks, uint64_t begin, uint64_t end) {
        note(group == 0 ? MOE_EP_WAIT_DISPATCH : MOE_EP_WAIT_COMBINE, -1, peer, begin, end);
        if (record_ != nullptr && record_->wait_ns != nullptr) {
            add(&record_->wait_ns[group * ranks + peer], clock_.duration_ns(end - begin));
        }
    }

private:
    static void add(int64_t *to, int64_t what) { __atomic_fetch_add(to, what, __ATOMIC_RELAXED); }

    const CallClock &clock_;
    moe_ep_record *const record_;
    const int32_t thread_;
    uint64_t ticks_[MOE_EP_STAGES] = {};
    int64_t bytes_[MOE_EP_STAGES][MOE_EP_TRAFFICS] = {};
};

// From here to the end of the block.
class Lap {
public:
    Lap(Recorder &recorder, moe_ep_stage stage, int32_t expert = -1)
        : recorder_(recorder), stage_(stage), expert_(expert), begin_(wait_ticks()) {}
    ~Lap() { recorder_.note(stage_, expert_, -1, begin_, wait_ticks()); }
    Lap(const Lap &) = delete;
    Lap &operator=(const Lap &) = delete;

private:
    Recorder &recorder_;
    const moe_ep_stage stage_;
    const int32_t expert_;
    const uint64_t begin_;
};

} // namespace ep
} // namespace moe
