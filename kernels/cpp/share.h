// Sharing items out among the threads of a team.
#pragma once

#include <cstdint>

namespace moe {

// The part [begin, end) of `count` items that belongs to `thread` of `threads`: contiguous, sizes
// differ by at most one (OpenMP's static schedule).
struct Share {
    int64_t begin;
    int64_t end;
};

static inline Share static_share(int64_t count, int32_t thread, int32_t threads) {
    const int64_t base = count / threads;
    const int64_t rest = count % threads;
    const int64_t begin = thread * base + (thread < rest ? thread : rest);
    return {begin, begin + base + (thread < rest ? 1 : 0)};
}

} // namespace moe
