// One call's view of the windows of all ranks: placing rows, publishing, waiting with a deadline.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "moe_ep.h"
#include "recorder.h"

namespace moe {
namespace ep {

class Exchange {
public:
    Exchange(const moe_ep_call &call, const moe_ep_group &group);

    std::size_t ranks() const { return ranks_; }
    std::size_t local() const { return local_; }
    std::size_t slot_bytes() const { return static_cast<std::size_t>(at_.slot_bytes); }
    std::size_t row_bytes() const { return static_cast<std::size_t>(at_.row_bytes); }
    std::size_t first_own() const { return static_cast<std::size_t>(group_.rank) * local_; }

    // Where this rank's slots for (global) expert e begin, in its owner's window.
    uint8_t *slots_at_owner(std::size_t expert) const;
    // In this rank's own window: the slots of a source, and the rows that came back from an expert.
    const uint8_t *slots_from(std::size_t source, std::size_t local_expert) const;
    const uint8_t *rows_from(std::size_t expert) const;
    // Where rows of own local expert l go back to, in the source's window.
    uint8_t *rows_at_source(std::size_t source, std::size_t local_expert) const;

    // All rows of this rank for that expert are in place.
    void publish(std::size_t expert, uint32_t count) const;
    // All rows of this rank's experts are back at their sources.
    void publish_done() const;

    // Returns the count, or -1 when the call has to stop.
    int64_t wait_for_rows(std::size_t source, std::size_t local_expert, Recorder &recorder);
    // False when the call has to stop.
    bool wait_for_done(std::size_t owner, Recorder &recorder);

    bool ok() const { return status_.load(std::memory_order_relaxed) == MOE_OK; }
    // Ends the call for all ranks. peer: the cause, -1: none.
    void fail(int32_t status, int32_t peer, moe_ep_stage stage);
    // The call's status; notes peer and stage of an error.
    int32_t finish(moe_ep_record *record) const;

private:
    template <class Ready>
    bool wait(const Ready &ready, std::size_t peer, int32_t phase, Recorder &recorder);
    bool may_wait(std::size_t peer, moe_ep_stage stage, uint64_t deadline_ns);

    const moe_ep_group &group_;
    const moe_ep_window &at_;
    const std::size_t ranks_, local_;
    std::atomic<int32_t> status_{MOE_OK};
    std::atomic<int32_t> peer_{-1}, stage_{-1};
};

// Whether a call and a group fit together.
bool fits(const moe_ep_call &call, const moe_ep_group &group);

} // namespace ep
} // namespace moe
