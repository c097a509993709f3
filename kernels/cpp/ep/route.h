// expandIdx: which slot of its expert a choice takes.
#pragma once

#include <cstdint>

namespace moe {
namespace ep {

enum class RouteMethod : int32_t { kFastest = 0, kCount = 1, kTable = 2 };

// Whether the table of method kTable serves: its uint8 entries hold at most 64.
bool table_serves(int32_t active, int32_t k, int32_t experts);

// As moe_ep_route; ids are below experts. expand_idx: (bs, k), counts: (experts). False: not this method.
bool route(int32_t active, int32_t bs, int32_t k, int32_t experts, const int32_t *expert_ids,
           RouteMethod method, int32_t *expand_idx, int32_t *counts);

} // namespace ep
} // namespace moe
