// Windows: stores into other ranks' memory, epochs that say when it is complete, and waits that end.
#include "exchange.h"

#include <sched.h>
#include <time.h>

namespace moe {
namespace ep {
namespace {

// A wait spins while an answer may be a fraction of a microsecond away, then gives its CPU to whoever
// wants it, then sleeps: where ranks outnumber CPUs, the awaited one needs this one's.
constexpr uint64_t kSpinNs = 20'000;
constexpr uint64_t kYieldNs = 2'000'000;
constexpr long kSleepNs = 50'000;
constexpr int kChecksPerLook = 64; // spins between looks at the clock and the abort word

void pause_briefly() {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

uint64_t *word_at(uint8_t *base, int64_t offset) {
    return reinterpret_cast<uint64_t *>(base + offset);
}

// Sets the word of one window unless somebody was first.
void ask_to_stop(uint8_t *base, int64_t offset, uint64_t who) {
    uint64_t none = 0;
    __atomic_compare_exchange_n(word_at(base, offset), &none, who, false, __ATOMIC_ACQ_REL,
                                __ATOMIC_RELAXED);
}

} // namespace

bool fits(const moe_ep_call &call, const moe_ep_group &group) {
    return group.ranks >= 1 && group.rank >= 0 && group.rank < group.ranks && call.experts >= 1 &&
           call.experts % group.ranks == 0 && call.bs <= group.layout.max_bs &&
           group.bases != nullptr &&
           group.layout.slot_bytes >= call.h + static_cast<int64_t>(sizeof(float)) &&
           group.layout.row_bytes >= 2 * static_cast<int64_t>(call.h) && group.epoch > 0;
}

Exchange::Exchange(const moe_ep_call &call, const moe_ep_group &group)
    : group_(group), at_(group.layout), ranks_(static_cast<std::size_t>(group.ranks)),
      local_(static_cast<std::size_t>(call.experts / group.ranks)) {}

uint8_t *Exchange::slots_at_owner(std::size_t expert) const {
    const std::size_t index = static_cast<std::size_t>(group_.rank) * local_ + expert % local_;
    return group_.bases[expert / local_] + at_.dispatch +
           index * static_cast<std::size_t>(at_.max_bs) * slot_bytes();
}

const uint8_t *Exchange::slots_from(std::size_t source, std::size_t local_expert) const {
    return group_.bases[group_.rank] + at_.dispatch +
           (source * local_ + local_expert) * static_cast<std::size_t>(at_.max_bs) * slot_bytes();
}

const uint8_t *Exchange::rows_from(std::size_t expert) const {
    return group_.bases[group_.rank] + at_.combine +
           expert * static_cast<std::size_t>(at_.max_bs) * row_bytes();
}

uint8_t *Exchange::rows_at_source(std::size_t source, std::size_t local_expert) const {
    return group_.bases[source] + at_.combine +
           (first_own() + local_expert) * static_cast<std::size_t>(at_.max_bs) * row_bytes();
}

void Exchange::publish(std::size_t expert, uint32_t count) const {
    uint8_t *base = group_.bases[expert / local_];
    const int64_t offset = at_.cells + group_.rank * at_.cells_stride +
                           static_cast<int64_t>(expert % local_ * sizeof(moe_ep_cell));
    moe_ep_cell *cell = reinterpret_cast<moe_ep_cell *>(base + offset);
    cell->count = count;
    cell->setup = group_.setup;
    __atomic_store_n(&cell->epoch, group_.epoch, __ATOMIC_RELEASE);
}

void Exchange::publish_done() const {
    for (std::size_t i = 0; i < ranks_; ++i) {
        // The own flag last: the others can go on in the meantime.
        const std::size_t source = (static_cast<std::size_t>(group_.rank) + 1 + i) % ranks_;
        __atomic_store_n(word_at(group_.bases[source], at_.done + group_.rank * at_.done_stride),
                         group_.epoch, __ATOMIC_RELEASE);
    }
}

int64_t Exchange::wait_for_rows(std::size_t source, std::size_t local_expert, Recorder &recorder) {
    const int64_t offset = at_.cells + static_cast<int64_t>(source) * at_.cells_stride +
                           static_cast<int64_t>(local_expert * sizeof(moe_ep_cell));
    const moe_ep_cell *cell =
        reinterpret_cast<const moe_ep_cell *>(group_.bases[group_.rank] + offset);
    const auto ready = [&] {
        return __atomic_load_n(&cell->epoch, __ATOMIC_ACQUIRE) >= group_.epoch;
    };
    if (!wait(ready, source, 0, recorder)) {
        return -1;
    }
    if (cell->setup != group_.setup || cell->count > static_cast<uint32_t>(at_.max_bs)) {
        fail(MOE_EP_MISMATCH, static_cast<int32_t>(source), MOE_EP_WAIT_DISPATCH);
        return -1;
    }
    return cell->count;
}

bool Exchange::wait_for_done(std::size_t owner, Recorder &recorder) {
    const uint64_t *flag = word_at(group_.bases[group_.rank],
                                   at_.done + static_cast<int64_t>(owner) * at_.done_stride);
    return wait([&] { return __atomic_load_n(flag, __ATOMIC_ACQUIRE) >= group_.epoch; }, owner, 1,
                recorder);
}

int32_t Exchange::finish(moe_ep_record *record) const {
    const int32_t status = status_.load(std::memory_order_acquire);
    if (status != MOE_OK && record != nullptr) {
        record->peer = peer_.load(std::memory_order_relaxed);
        record->stage = stage_.load(std::memory_order_relaxed);
    }
    return status;
}

template <class Ready>
bool Exchange::wait(const Ready &ready, std::size_t peer, int32_t phase, Recorder &recorder) {
    if (ready()) {
        return ok();
    }
    const moe_ep_stage stage = phase == 0 ? MOE_EP_WAIT_DISPATCH : MOE_EP_WAIT_COMBINE;
    const uint64_t begin = wait_ticks(), begin_ns = wait_clock_ns();
    const uint64_t limit_ns =
        group_.timeout_s > 0 ? static_cast<uint64_t>(group_.timeout_s * 1e9) : UINT64_MAX / 2;
    const uint64_t spin_ns = group_.crowded != 0 ? 0 : kSpinNs;
    bool came = false;
    while (!came && may_wait(peer, stage, begin_ns + limit_ns)) {
        const uint64_t waited_ns = wait_clock_ns() - begin_ns;
        if (waited_ns < spin_ns) {
            for (int i = 0; i < kChecksPerLook && !came; ++i) {
                pause_briefly();
                came = ready();
            }
            continue;
        }
        if (waited_ns < kYieldNs) {
            sched_yield();
        } else {
            const timespec nap{0, kSleepNs};
            nanosleep(&nap, nullptr);
        }
        came = ready();
    }
    recorder.note_wait(phase, static_cast<int32_t>(peer), group_.ranks, begin, wait_ticks());
    return came && ok();
}

// False when the call has to stop: another thread found an error, a rank asked for it, time is over.
bool Exchange::may_wait(std::size_t peer, moe_ep_stage stage, uint64_t deadline_ns) {
    const uint64_t who =
        __atomic_load_n(word_at(group_.bases[group_.rank], at_.abort), __ATOMIC_ACQUIRE);
    if (who != 0) {
        fail(MOE_EP_ABORTED, static_cast<int32_t>(who - 1), stage);
    } else if (wait_clock_ns() > deadline_ns) {
        fail(MOE_EP_TIMEOUT, static_cast<int32_t>(peer), stage);
    }
    return ok();
}

void Exchange::fail(int32_t status, int32_t peer, moe_ep_stage stage) {
    int32_t none = MOE_OK;
    if (status_.compare_exchange_strong(none, status)) {
        peer_.store(peer, std::memory_order_relaxed);
        stage_.store(stage, std::memory_order_relaxed);
        moe_ep_abort(&group_);
    }
}

} // namespace ep
} // namespace moe

extern "C" void moe_ep_abort(const moe_ep_group *group) {
    for (int32_t rank = 0; rank < group->ranks; ++rank) {
        moe::ep::ask_to_stop(group->bases[rank], group->layout.abort,
                             static_cast<uint64_t>(group->rank) + 1);
    }
}
