// Phase timers: how long each thread spends in each step of a forward pass.
//
// Compiled in with -DMOE_PHASES only; otherwise every call is empty and the class holds nothing.
// A thread that works calls enter(thread, phase) when a step starts and leave(thread) before it
// waits (barrier, end of the parallel region); consecutive enter calls share one clock reading.
// Time outside enter..leave during a forward is that thread's waiting time. The last forward's steps are
// kept one by one as well, for a timeline.
// With -DMOE_PHASE_MARKS instead, the same calls mark the steps for an emulator (phase_marks.h).
#pragma once

#include <cstdint>

#include "moe_prof.h"

#ifdef MOE_PHASES
#include <ctime>

#include "aligned_array.h"
#endif
#ifdef MOE_PHASE_MARKS
#include "phase_marks.h"
#endif

namespace moe {

#ifdef MOE_PHASES

constexpr bool kHasPhaseTimers = true;

static inline uint64_t phase_clock_ns() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<uint64_t>(now.tv_sec) * 1000000000u + static_cast<uint64_t>(now.tv_nsec);
}

class PhaseTimers {
public:
    struct Span {
        uint64_t begin_ns, end_ns; // since the forward's begin
        int32_t phase;
    };
    static constexpr int64_t kMostSpans = 4096; // of a thread and forward; what follows is not kept

    explicit PhaseTimers(int32_t threads)
        : lanes_(static_cast<std::size_t>(threads)),
          spans_(static_cast<std::size_t>(threads) * kMostSpans) {
        reset();
    }

    void reset() {
        for (std::size_t i = 0; i < lanes_.size(); ++i) {
            lanes_[i] = Lane{};
            lanes_[i].phase = kIdle;
        }
        wall_ns_ = 0;
    }
    void forward_begin() {
        for (std::size_t i = 0; i < lanes_.size(); ++i) {
            lanes_[i].spans = 0;
        }
        forward_start_ns_ = phase_clock_ns();
    }
    void forward_end() {
        last_ns_ = phase_clock_ns() - forward_start_ns_;
        wall_ns_ += last_ns_;
    }

    void enter(int32_t thread, moe_phase phase) {
        Lane &lane = lanes_[static_cast<std::size_t>(thread)];
        const uint64_t now_ns = phase_clock_ns();
        close(thread, now_ns);
        lane.phase = phase;
        lane.since_ns = now_ns;
    }
    void leave(int32_t thread) {
        Lane &lane = lanes_[static_cast<std::size_t>(thread)];
        close(thread, phase_clock_ns());
        lane.phase = kIdle;
    }

    int32_t threads() const { return static_cast<int32_t>(lanes_.size()); }
    uint64_t wall_ns() const { return wall_ns_; }
    uint64_t phase_ns(int32_t thread, int32_t phase) const {
        return lanes_[static_cast<std::size_t>(thread)].ns[phase];
    }

    // The last forward: its time, how many steps a thread took in it, and those that were kept.
    uint64_t last_ns() const { return last_ns_; }
    int64_t spans(int32_t thread) const { return lanes_[static_cast<std::size_t>(thread)].spans; }
    const Span &span(int32_t thread, int64_t index) const {
        return spans_.data()[thread * kMostSpans + index];
    }

private:
    static constexpr int32_t kIdle = -1;

    // Whole cache lines per thread: no false sharing between the timers themselves.
    struct alignas(64) Lane {
        uint64_t ns[MOE_PHASE_COUNT];
        uint64_t since_ns;
        int64_t spans;
        int32_t phase;
    };

    void close(int32_t thread, uint64_t now_ns) {
        Lane &lane = lanes_[static_cast<std::size_t>(thread)];
        if (lane.phase == kIdle) {
            return;
        }
        lane.ns[lane.phase] += now_ns - lane.since_ns;
        Span *kept = spans_.data() + thread * kMostSpans;
        const Span span = {lane.since_ns - forward_start_ns_, now_ns - forward_start_ns_, lane.phase};
        Span *last = lane.spans > 0 && lane.spans <= kMostSpans ? kept + lane.spans - 1 : nullptr;
        if (last != nullptr && last->phase == span.phase && last->end_ns == span.begin_ns) {
            last->end_ns = span.end_ns; // one step in several pieces
            return;
        }
        if (lane.spans < kMostSpans) {
            kept[lane.spans] = span;
        }
        ++lane.spans;
    }

    AlignedArray<Lane> lanes_;
    AlignedArray<Span> spans_; // (threads, kMostSpans)
    uint64_t last_ns_ = 0;
    uint64_t wall_ns_ = 0;
    uint64_t forward_start_ns_ = 0;
};

#else

constexpr bool kHasPhaseTimers = false;

class PhaseTimers {
public:
    explicit PhaseTimers(int32_t) {}
    void reset() {}
    void forward_begin() {}
    void forward_end() {}
#ifdef MOE_PHASE_MARKS
    void enter(int32_t, moe_phase phase) { mark_phase(phase); }
    void leave(int32_t) { moe_phase_mark_none(); }
#else
    void enter(int32_t, moe_phase) {}
    void leave(int32_t) {}
#endif
    int32_t threads() const { return 0; }
    uint64_t wall_ns() const { return 0; }
    uint64_t phase_ns(int32_t, int32_t) const { return 0; }
};

#endif

} // namespace moe
