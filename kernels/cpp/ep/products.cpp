// Stage by stage through memory, and the parts that the fused block shares with it.
#include "products.h"

#include <algorithm>
#include <cstring>

#include "rows.h"

namespace moe {
namespace ep {
namespace {

moe_ep_stage label(moe_ep_stage asked, moe_ep_stage own) {
    return asked == MOE_EP_STAGES ? own : asked;
}

// One panel's channels of a product straight into c, or through the tile where the matrix ends inside.
void multiply_into(Worker &worker, const RowTiles &tiles, std::size_t begin, std::size_t mr,
                   const uint8_t *panel, std::size_t channels, int32_t *c, std::size_t c_stride) {
    const moe_microkernels &mk = worker.mk;
    if (channels == mk.nr && c_stride >= mk.nr) {
        tiles.multiply(mk, begin, mr, panel, c, c_stride);
        return;
    }
    int32_t *acc = worker.scratch.acc.data();
    tiles.multiply(mk, begin, mr, panel, acc, mk.nr);
    for (std::size_t i = 0; i < mr; ++i) {
        std::memcpy(c + i * c_stride, acc + i * mk.nr, channels * sizeof(int32_t));
    }
}

} // namespace

void arrange(Worker &worker, std::size_t n, const int8_t *q, uint8_t *row) {
    float *values = worker.scratch.values.data();
    widen(n, q, values);
    worker.mk.quantize(n, values, 127.0f, row); // times 127 / 127: exact on every path
}

void count_weights(Worker &worker, moe_ep_stage stage, std::size_t panels_bytes,
                   std::size_t channels) {
    worker.recorder.count(stage, MOE_EP_MEMORY_READ, panels_bytes + channels * sizeof(float));
}

void multiply_down(Worker &worker, const PackedExpert &expert, std::size_t count,
                   const void *const *rows, const float *s2, int32_t dtype, uint8_t *const *out) {
    const moe_microkernels &mk = worker.mk;
    const moe_microkernels &down = *moe_down_kernels(&mk);
    const ExpertShape &shape = *expert.shape;
    int32_t *acc = worker.scratch.acc.data();
    uint8_t *targets[kMaxBlockRows];
    const RowTiles tiles(worker, shape.m, rows, count);
    for (std::size_t p = 0; p < shape.down_panels; ++p) {
        const std::size_t first = p * mk.nr, channels = std::min(mk.nr, shape.h - first);
        for (std::size_t begin = 0; begin < count; begin += mk.mr) {
            const std::size_t mr = std::min(mk.mr, count - begin);
            tiles.multiply(down, begin, mr, expert.down_panel(p), acc, mk.nr);
            for (std::size_t i = 0; i < mr; ++i) {
                targets[i] = out[begin + i] + first * kElementBytes;
            }
            dequantize_tile(mr, channels, acc, mk.nr, expert.down_scale + first, s2 + begin, dtype,
                            targets);
        }
    }
}

void multiply_first(Worker &worker, std::size_t index, std::size_t rows, const int8_t *q, int32_t *c,
                    moe_ep_stage asked) {
    const moe_ep_stage stage = label(asked, MOE_EP_GMM1);
    const Lap lap(worker.recorder, stage, static_cast<int32_t>(index));
    const moe_microkernels &mk = worker.mk;
    const PackedExpert &expert = worker.engine.experts[index];
    const ExpertShape &shape = *expert.shape;
    Scratch &scratch = worker.scratch;
    for (std::size_t block = 0; block < rows; block += worker.engine.block_rows) {
        const std::size_t count = std::min(worker.engine.block_rows, rows - block);
        for (std::size_t i = 0; i < count; ++i) {
            arrange(worker, shape.h, q + (block + i) * shape.h, scratch.x_row(i));
            scratch.operands[i] = scratch.x_row(i);
        }
        const RowTiles tiles(worker, shape.h, scratch.operands.data(), count);
        for (std::size_t p = 0; p < shape.pairs; ++p) {
            const std::size_t first = p * mk.nr, channels = std::min(mk.nr, shape.m - first);
            for (std::size_t begin = 0; begin < count; begin += mk.mr) {
                const std::size_t mr = std::min(mk.mr, count - begin);
                int32_t *to = c + (block + begin) * shape.n + first;
                multiply_into(worker, tiles, begin, mr, expert.gate_panel(p), channels, to, shape.n);
                multiply_into(worker, tiles, begin, mr, expert.up_panel(p), channels, to + shape.m,
                              shape.n);
            }
        }
        count_weights(worker, stage, 2 * shape.pairs * shape.panel_bytes, 0);
    }
    worker.recorder.count(stage, MOE_EP_MEMORY_READ, rows * shape.h);
    worker.recorder.count(stage, MOE_EP_MEMORY_WRITTEN, rows * shape.n * sizeof(int32_t));
}

void activate(Worker &worker, std::size_t index, std::size_t rows, const int32_t *c, const float *s,
              int8_t *q2, float *s2, moe_ep_stage asked) {
    const moe_ep_stage stage = label(asked, MOE_EP_SWIGLU);
    const Lap lap(worker.recorder, stage, static_cast<int32_t>(index));
    const PackedExpert &expert = worker.engine.experts[index];
    const ExpertShape &shape = *expert.shape;
    float *z = worker.scratch.z.data();
    for (std::size_t i = 0; i < rows; ++i) {
        const int32_t *gate = c + i * shape.n;
        swiglu_tile(1, shape.m, gate, gate + shape.m, 0, expert.gate_scale, expert.up_scale, s + i, z,
                    0);
        s2[i] = scale_z(shape.m, z);
        round_to_int8(shape.m, z, q2 + i * shape.m);
    }
    const std::size_t c_bytes = shape.n * sizeof(int32_t), z_bytes = shape.m * sizeof(float);
    worker.recorder.count(stage, MOE_EP_MEMORY_READ,
                          rows * (c_bytes + kScaleBytes) + shape.n * sizeof(float));
    worker.recorder.count(stage, MOE_EP_MEMORY_WRITTEN, rows * (shape.m + kScaleBytes));
    worker.recorder.count(stage, MOE_EP_CACHE_READ, rows * z_bytes);
    worker.recorder.count(stage, MOE_EP_CACHE_WRITTEN, rows * z_bytes);
}

void multiply_second(Worker &worker, std::size_t index, std::size_t rows, const int8_t *q2,
                     const float *s2, int32_t dtype, uint8_t *const *out, moe_ep_stage asked) {
    const moe_ep_stage stage = label(asked, MOE_EP_GMM2);
    const Lap lap(worker.recorder, stage, static_cast<int32_t>(index));
    const PackedExpert &expert = worker.engine.experts[index];
    const ExpertShape &shape = *expert.shape;
    Scratch &scratch = worker.scratch;
    for (std::size_t block = 0; block < rows; block += worker.engine.block_rows) {
        const std::size_t count = std::min(worker.engine.block_rows, rows - block);
        for (std::size_t i = 0; i < count; ++i) {
            arrange(worker, shape.m, q2 + (block + i) * shape.m, scratch.q2_row(i));
            scratch.operands[i] = scratch.q2_row(i);
        }
        multiply_down(worker, expert, count, scratch.operands.data(), s2 + block, dtype, out + block);
        count_weights(worker, stage, shape.down_panels * shape.down_panel_bytes, shape.h);
    }
    worker.recorder.count(stage, MOE_EP_MEMORY_READ, rows * (shape.m + kScaleBytes));
    worker.recorder.count(stage, MOE_EP_MEMORY_WRITTEN, rows * shape.h * kElementBytes);
}

} // namespace ep
} // namespace moe
