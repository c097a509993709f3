// What both variants over packed weights say of their microkernels in plan info.
#pragma once

#include <cstdio>

#include "path.h"

namespace moe {
namespace packed {

// max_tokens 1: no other tile than that of one row can run.
static inline void describe_microkernels(const moe_microkernels &mk, int32_t max_tokens,
                                         moe_info *info) {
    const bool one = max_tokens == 1;
    std::snprintf(info->microkernel, sizeof info->microkernel, "%s",
                  one ? mk.gemm_one_name : mk.gemm_name);
    info->mr = one ? 1 : static_cast<int32_t>(mk.mr);
    info->nr = static_cast<int32_t>(mk.nr);
    info->kr = static_cast<int32_t>(mk.kr);
    describe_fallback(info);
}

} // namespace packed
} // namespace moe
