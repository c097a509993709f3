// Products of a few rows with consecutive panels, by what the path has for that number of rows.
#pragma once

#include <cstddef>
#include <cstdint>

#include "microkernels.h"

namespace moe {
namespace packed {

// Consecutive panels of k weights per channel.
struct Panels {
    const uint8_t *first;
    std::size_t k, bytes_each, count;

    // Panels [begin, begin + most), or up to the end.
    Panels part(std::size_t begin, std::size_t most) const {
        const std::size_t left = count - begin;
        return {first + begin * bytes_each, k, bytes_each, most < left ? most : left};
    }
};

// acc[m * acc_stride + p * nr + c] for `count` <= mk.mr rows and all of the panels.
inline void multiply(const moe_microkernels &mk, const void *const *rows, std::size_t count,
                     const Panels &panels, int32_t *acc, std::size_t acc_stride) {
    if (mk.gemm_panels[count - 1] != nullptr) {
        mk.gemm_panels[count - 1](panels.k, panels.count, panels.bytes_each, rows, panels.first,
                                  acc, acc_stride);
        return;
    }
    const uint8_t *panel = panels.first;
    for (std::size_t p = 0; p < panels.count; ++p, panel += panels.bytes_each, acc += mk.nr) {
        mk.gemm[count - 1](panels.k, rows, panel, acc, acc_stride);
    }
}

// How many panels a call should take when several tiles of rows want them in turn.
inline std::size_t panels_at_once(const moe_microkernels &mk, std::size_t panel_bytes) {
    const std::size_t fitting = mk.bytes_at_once / panel_bytes;
    return fitting == 0 ? 1 : fitting;
}

} // namespace packed
} // namespace moe
