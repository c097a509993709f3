// Whether a call's values are what the operator takes: a quick yes or no, before each call.
#include <cstddef>
#include <cstdint>

#include "moe_ep.h"
#include "scalars.h"

namespace moe {
namespace ep {
namespace {

// No element's exponent is all ones.
bool all_finite_16(std::size_t n, const uint16_t *values, uint16_t exponent) {
    uint16_t found = 0;
    for (std::size_t i = 0; i < n; ++i) {
        found = static_cast<uint16_t>(found | ((values[i] & exponent) == exponent ? 1 : 0));
    }
    return found == 0;
}

bool all_finite_32(std::size_t n, const float *values) {
    uint32_t largest = 0;
    for (std::size_t i = 0; i < n; ++i) {
        const uint32_t magnitude = bits_of(values[i]) & kMagnitude;
        largest = largest < magnitude ? magnitude : largest;
    }
    return largest < 0x7f800000;
}

// Ids in -1..experts-1, none twice.
bool is_choice(int32_t k, int32_t experts, const int32_t *ids) {
    for (int32_t j = 0; j < k; ++j) {
        if (ids[j] < -1 || ids[j] >= experts) {
            return false;
        }
        for (int32_t i = 0; i < j; ++i) {
            if (ids[i] == ids[j] && ids[j] >= 0) {
                return false;
            }
        }
    }
    return true;
}

} // namespace
} // namespace ep
} // namespace moe

extern "C" int32_t moe_ep_valid(const moe_ep_call *call) {
    const std::size_t bs = static_cast<std::size_t>(call->bs), k = static_cast<std::size_t>(call->k);
    for (std::size_t t = 0; t < static_cast<std::size_t>(call->active); ++t) {
        if (!moe::ep::is_choice(call->k, call->experts, call->expert_ids + t * k)) {
            return 0;
        }
    }
    const uint16_t exponent = call->dtype == MOE_EP_BF16 ? 0x7f80 : 0x7c00;
    return moe::ep::all_finite_16(bs * static_cast<std::size_t>(call->h),
                                  static_cast<const uint16_t *>(call->x), exponent) &&
                   moe::ep::all_finite_32(bs * k, call->expert_scales)
               ? 1
               : 0;
}
