// The CPUs that this process may use, and binding the calling thread to one of them.
#pragma once

#include <cstdint>

namespace moe {

// How many threads can make progress at once: the CPUs of the affinity mask, or fewer where a
// cgroup's CPU quota allows less time than that. At least 1.
int32_t usable_cpus();

// Whole CPUs' worth of time in a cgroup's limit; 0 when it sets none. v2: the text of cpu.max, v1:
// the quota and the period, each in microseconds.
int32_t cpus_of_quota(const char *quota_and_period);

// The affinity mask that the calling thread had before a plan bound it. Copied by value into new
// threads, which would otherwise inherit a mask of one CPU from a bound creator.
class CpuSet {
public:
    static CpuSet of_caller();

    int32_t count() const { return count_; }
    void bind_caller() const;                // to the whole set
    void bind_caller_to(int32_t index) const; // to the set's CPU of that index, modulo count

private:
    static constexpr int32_t kWords = 64; // 4096 CPUs
    uint64_t mask_[kWords] = {};
    int32_t count_ = 0; // 0: the mask is unknown, and binding does nothing
};

// Binds the calling thread to the first CPU of its mask for as long as the object lives. Several
// may live at once on a thread: the last one to go gives the mask back. Destroyed on another
// thread, it leaves the mask alone.
class CallerBinding {
public:
    explicit CallerBinding(bool bind);
    ~CallerBinding();
    CallerBinding(const CallerBinding &) = delete;
    CallerBinding &operator=(const CallerBinding &) = delete;

    static bool caller_is_bound();

private:
    const void *thread_ = nullptr; // identity of the bound thread, nullptr: none
};

} // namespace moe
