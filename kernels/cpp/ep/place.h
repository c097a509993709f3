// Dispatch and combine of single tokens: what all transports and both operators do alike.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "block.h"
#include "rows.h"

namespace moe {
namespace ep {

constexpr std::size_t kMaxTopK = 64;

// Step 1 of token t for each of its experts: q and s to slot(e) + expand_idx * slot_bytes, then placed(e).
// Without smoothing it is quantized once.
template <class Slot, class Placed>
static inline void place_token(Worker &worker, const moe_ep_call &call, std::size_t t,
                               const int32_t *expand_idx, std::size_t slot_bytes, const Slot &slot,
                               const Placed &placed) {
    const std::size_t h = static_cast<std::size_t>(call.h), k = static_cast<std::size_t>(call.k);
    const uint8_t *x = static_cast<const uint8_t *>(call.x) + t * h * kElementBytes;
    int8_t *q = worker.scratch.bytes_row.data();
    float scale = 0.0f;
    bool quantized = false;
    for (std::size_t i = t * k; i < (t + 1) * k; ++i) {
        if (expand_idx[i] < 0) {
            continue;
        }
        const std::size_t expert = static_cast<std::size_t>(call.expert_ids[i]);
        if (!quantized || call.smooth != nullptr) {
            const float *smooth = call.smooth == nullptr ? nullptr : call.smooth + expert * h;
            scale = quantize_x(h, call.dtype, x, smooth, worker.scratch.values.data(), q);
            quantized = true;
            worker.recorder.count(MOE_EP_DISPATCH, MOE_EP_MEMORY_READ,
                                  h * kElementBytes + (smooth == nullptr ? 0 : h * sizeof(float)));
            worker.recorder.count(MOE_EP_DISPATCH, MOE_EP_CACHE_WRITTEN, h + h * sizeof(float));
            worker.recorder.count(MOE_EP_DISPATCH, MOE_EP_CACHE_READ, h * sizeof(float));
        }
        uint8_t *to = slot(expert) + static_cast<std::size_t>(expand_idx[i]) * slot_bytes;
        std::memcpy(to, q, h);
        std::memcpy(to + h, &scale, kScaleBytes);
        worker.recorder.count(MOE_EP_DISPATCH, MOE_EP_CACHE_READ, h);
        worker.recorder.count(MOE_EP_DISPATCH, MOE_EP_MEMORY_WRITTEN, h + kScaleBytes);
        placed(expert);
    }
}

// Slots one after another to rows of x1 and x1_scale.
static inline void copy_run(std::size_t h, const uint8_t *slots, std::size_t count,
                            std::size_t slot_bytes, int8_t *x1, float *x1_scale) {
    for (std::size_t i = 0; i < count; ++i) {
        std::memcpy(x1 + i * h, slots + i * slot_bytes, h);
        std::memcpy(x1_scale + i, slots + i * slot_bytes + h, kScaleBytes);
    }
}

// Step 6 of token t from rows(e) + expand_idx * row_bytes.
template <class Rows>
static inline void sum_token(Worker &worker, const moe_ep_call &call, std::size_t t,
                             const int32_t *expand_idx, std::size_t row_bytes, const Rows &rows) {
    const std::size_t h = static_cast<std::size_t>(call.h), k = static_cast<std::size_t>(call.k);
    const uint8_t *parts[kMaxTopK];
    float scales[kMaxTopK];
    std::size_t count = 0;
    for (std::size_t i = t * k; i < (t + 1) * k; ++i) {
        if (expand_idx[i] >= 0) {
            parts[count] = rows(static_cast<std::size_t>(call.expert_ids[i])) +
                           static_cast<std::size_t>(expand_idx[i]) * row_bytes;
            scales[count++] = call.expert_scales[i];
        }
    }
    weighted_sum(h, call.dtype, count, parts, scales,
                 static_cast<uint8_t *>(call.output) + t * h * kElementBytes);
    worker.recorder.count(MOE_EP_COMBINE, MOE_EP_MEMORY_READ, count * h * kElementBytes);
    worker.recorder.count(MOE_EP_COMBINE, MOE_EP_MEMORY_WRITTEN, h * kElementBytes);
}

static inline void clear_share_output(const moe_ep_call &call) {
    if (call.share_output != nullptr) {
        const std::size_t values = static_cast<std::size_t>(call.bs) * static_cast<std::size_t>(call.h);
        std::memset(call.share_output, 0, values * kElementBytes);
    }
}

// Whether a call's sizes and pointers are usable.
static inline bool fits_call(const moe_ep_engine *engine, const moe_ep_call *call) {
    if (engine == nullptr || call == nullptr || call->bs < 0 || call->active < 0 ||
        call->active > call->bs || call->k < 0 || call->k > static_cast<int32_t>(kMaxTopK) ||
        static_cast<std::size_t>(call->h) != engine->experts.routed.h ||
        (call->dtype != MOE_EP_BF16 && call->dtype != MOE_EP_FP16)) {
        return false;
    }
    return call->bs == 0 || (call->x != nullptr && call->output != nullptr &&
                             (call->k == 0 || (call->expert_ids != nullptr &&
                                               call->expert_scales != nullptr)));
}

} // namespace ep
} // namespace moe
