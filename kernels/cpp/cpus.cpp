// Source of the quota's files: Documentation/admin-guide/cgroup-v2.rst (cpu.max) and
// Documentation/scheduler/sched-bwc.rst (cpu.cfs_quota_us) of the Linux kernel.
#include "cpus.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#ifdef __linux__
#include <sched.h>
#endif

namespace moe {
namespace {

// A thread that plans have bound, with the mask it had before.
struct Bound {
    int32_t bindings = 0;
    CpuSet before;
};
thread_local Bound bound;

std::string first_line(const std::string &path) {
    char text[256] = "";
    if (std::FILE *file = std::fopen(path.c_str(), "r")) {
        if (std::fgets(text, sizeof text, file) == nullptr) {
            text[0] = '\0';
        }
        std::fclose(file);
    }
    return text;
}

// The smallest limit of a cgroup and its ancestors below the mount point; 0: none.
int32_t quota_below(const std::string &mount, std::string group, bool v2) {
    int32_t smallest = 0;
    for (;;) {
        const std::string folder = mount + group;
        const std::string text = v2 ? first_line(folder + "/cpu.max")
                                    : first_line(folder + "/cpu.cfs_quota_us") + " " +
                                          first_line(folder + "/cpu.cfs_period_us");
        const int32_t cpus = cpus_of_quota(text.c_str());
        smallest = cpus == 0 ? smallest : smallest == 0 ? cpus : std::min(smallest, cpus);
        const std::size_t slash = group.rfind('/');
        if (slash == std::string::npos) {
            return smallest;
        }
        group.resize(slash);
    }
}

// Lines of /proc/self/cgroup: id:controllers:path, with id 0 and no controllers for v2.
int32_t quota_of_process() {
    int32_t smallest = 0;
    std::FILE *file = std::fopen("/proc/self/cgroup", "r");
    if (file == nullptr) {
        return 0;
    }
    char line[4352];
    while (std::fgets(line, sizeof line, file) != nullptr) {
        line[std::strcspn(line, "\n")] = '\0';
        char *controllers = std::strchr(line, ':');
        char *group = controllers == nullptr ? nullptr : std::strchr(controllers + 1, ':');
        if (group == nullptr) {
            continue;
        }
        *group++ = '\0';
        ++controllers;
        const bool v2 = *controllers == '\0';
        const std::string names = std::string(",") + controllers + ",";
        if (!v2 && names.find(",cpu,") == std::string::npos) {
            continue;
        }
        const std::string mount = v2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/cpu";
        const int32_t cpus = quota_below(mount, std::strcmp(group, "/") == 0 ? "" : group, v2);
        smallest = cpus == 0 ? smallest : smallest == 0 ? cpus : std::min(smallest, cpus);
    }
    std::fclose(file);
    return smallest;
}

} // namespace

int32_t cpus_of_quota(const char *quota_and_period) {
    char *end = nullptr;
    const long long quota = std::strtoll(quota_and_period, &end, 10);
    if (end == quota_and_period || quota <= 0) { // "max", -1 or no such file
        return 0;
    }
    const long long period = std::strtoll(end, nullptr, 10);
    return period <= 0 ? 0 : static_cast<int32_t>(std::clamp(quota / period, 1LL, 1LL << 20));
}

int32_t usable_cpus() {
    int32_t cpus = CpuSet::of_caller().count();
    if (cpus == 0) {
        cpus = static_cast<int32_t>(std::max(1u, std::thread::hardware_concurrency()));
    }
    const int32_t quota = quota_of_process();
    return quota == 0 ? cpus : std::min(cpus, quota);
}

CpuSet CpuSet::of_caller() {
    if (bound.bindings > 0) {
        return bound.before;
    }
    CpuSet set;
#ifdef __linux__
    if (sched_getaffinity(0, sizeof set.mask_, reinterpret_cast<cpu_set_t *>(set.mask_)) == 0) {
        for (const uint64_t word : set.mask_) {
            set.count_ += __builtin_popcountll(word);
        }
    }
#endif
    return set;
}

void CpuSet::bind_caller() const {
#ifdef __linux__
    if (count_ > 0) {
        sched_setaffinity(0, sizeof mask_, reinterpret_cast<const cpu_set_t *>(mask_));
    }
#endif
}

void CpuSet::bind_caller_to([[maybe_unused]] int32_t index) const {
#ifdef __linux__
    if (count_ == 0) {
        return;
    }
    int32_t left = index % count_;
    for (int32_t cpu = 0; cpu < kWords * 64; ++cpu) {
        const uint64_t bit = uint64_t{1} << (cpu % 64);
        if ((mask_[cpu / 64] & bit) != 0 && left-- == 0) {
            uint64_t one[kWords] = {};
            one[cpu / 64] = bit;
            sched_setaffinity(0, sizeof one, reinterpret_cast<const cpu_set_t *>(one));
            return;
        }
    }
#endif
}

CallerBinding::CallerBinding(bool bind) {
    if (!bind) {
        return;
    }
    const CpuSet before = CpuSet::of_caller();
    if (before.count() == 0) {
        return;
    }
    bound.before = before;
    ++bound.bindings;
    before.bind_caller_to(0);
    thread_ = &bound;
}

bool CallerBinding::caller_is_bound() { return bound.bindings > 0; }

CallerBinding::~CallerBinding() {
    if (thread_ == &bound && --bound.bindings == 0) {
        bound.before.bind_caller();
    }
}

} // namespace moe
