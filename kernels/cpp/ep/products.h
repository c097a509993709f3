// What both ways through an expert share: tiles of rows, the second product, the form of rows.
#pragma once

#include <cstddef>
#include <cstdint>

#include "../packed/panel_products.h"
#include "block.h"

namespace moe {
namespace ep {

// Rows of one product as the path's microkernels want them, valid until the thread's next RowTiles.
class RowTiles {
public:
    RowTiles(Worker &worker, std::size_t k, const void *const *rows, std::size_t count)
        : k_(k), panel_bytes_(worker.mk.panel_bytes(k)), tiled_(worker.mk.tile_rows != 0),
          rows_(tiled_ ? worker.scratch.tiles.prepare(worker.mk, k, rows, count) : rows) {}
    // A path with tiles takes a whole block at once: mr = kMaxBlockRows there.
    void multiply(const moe_microkernels &mk, std::size_t begin, std::size_t mr, const uint8_t *panel,
                  int32_t *acc, std::size_t acc_stride) const {
        packed::multiply(mk, rows_ + begin, mr, {panel, k_, panel_bytes_, 1}, acc, acc_stride);
    }

private:
    const std::size_t k_, panel_bytes_;
    const bool tiled_;
    const void *const *const rows_;
};

// int8 (n) to a row in the path's form.
void arrange(Worker &worker, std::size_t n, const int8_t *q, uint8_t *row);

// Step 5 of `count` rows in the path's form to out[i].
void multiply_down(Worker &worker, const PackedExpert &expert, std::size_t count,
                   const void *const *rows, const float *s2, int32_t dtype, uint8_t *const *out);

void count_weights(Worker &worker, moe_ep_stage stage, std::size_t panels_bytes,
                   std::size_t channels);

} // namespace ep
} // namespace moe
