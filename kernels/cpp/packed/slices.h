// How many tokens are computed at once.
#pragma once

#include <algorithm>
#include <cstdint>

#include "moe_prof.h"

namespace moe {
namespace packed {

constexpr int64_t kPartsBytes = int64_t{256} << 20; // experts' outputs kept at once
constexpr int64_t kMinSliceTokens = 16;
constexpr int64_t kMaxSliceTokens = 4096;

// As many as the memory for the experts' outputs allows.
static inline int32_t slice_tokens(const moe_weights &w, int32_t max_tokens) {
    const int64_t per_token = (int64_t{w.top_k} + 1) * w.d_model * 4;
    const int64_t fitting = kPartsBytes / per_token;
    return static_cast<int32_t>(std::min<int64_t>(
        max_tokens, std::min(std::max(fitting, kMinSliceTokens), kMaxSliceTokens)));
}

} // namespace packed
} // namespace moe
