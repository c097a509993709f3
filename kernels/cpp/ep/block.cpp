// Blocks of rows of one expert, fused: what lies between the received slots and the rows that go back
// never leaves the thread's scratch.
#include "block.h"

#include <algorithm>
#include <cstring>

#include "products.h"
#include "rows.h"

namespace moe {
namespace ep {
namespace {

// Under which stages a block's time and bytes are noted.
struct Labels {
    moe_ep_stage gather, gmm1, swiglu, gmm2;
    int32_t expert;
};

Labels routed_labels(std::size_t expert) {
    return {MOE_EP_GATHER, MOE_EP_GMM1, MOE_EP_SWIGLU, MOE_EP_GMM2, static_cast<int32_t>(expert)};
}

void first_product(Worker &worker, const PackedExpert &expert, std::size_t count,
                   const Labels &labels) {
    const Lap lap(worker.recorder, labels.gmm1, labels.expert);
    const moe_microkernels &mk = worker.mk;
    const ExpertShape &shape = *expert.shape;
    Scratch &scratch = worker.scratch;
    int32_t *gate = scratch.acc.data(), *up = gate + mk.nr;
    for (std::size_t i = 0; i < count; ++i) {
        scratch.operands[i] = scratch.x_row(i);
    }
    const RowTiles tiles(worker, shape.h, scratch.operands.data(), count);
    for (std::size_t p = 0; p < shape.pairs; ++p) {
        for (std::size_t begin = 0; begin < count; begin += mk.mr) {
            const std::size_t mr = std::min(mk.mr, count - begin);
            tiles.multiply(mk, begin, mr, expert.gate_panel(p), gate, 2 * mk.nr);
            tiles.multiply(mk, begin, mr, expert.up_panel(p), up, 2 * mk.nr);
            swiglu_tile(mr, mk.nr, gate, up, 2 * mk.nr, expert.gate_scale + p * mk.nr,
                        expert.up_scale + p * mk.nr, scratch.x_scale.data() + begin,
                        scratch.z.data() + begin * scratch.z_stride + p * mk.nr, scratch.z_stride);
        }
    }
    count_weights(worker, labels.gmm1, 2 * shape.pairs * shape.panel_bytes, shape.n);
    const std::size_t c_bytes = shape.n * sizeof(int32_t), z_bytes = shape.m * sizeof(float);
    worker.recorder.count(labels.gmm1, MOE_EP_CACHE_READ, count * (shape.h + c_bytes));
    worker.recorder.count(labels.gmm1, MOE_EP_CACHE_WRITTEN, count * (c_bytes + z_bytes));
}

void quantize_block(Worker &worker, const PackedExpert &expert, std::size_t count,
                    const Labels &labels) {
    const Lap lap(worker.recorder, labels.swiglu, labels.expert);
    Scratch &scratch = worker.scratch;
    const std::size_t m = expert.shape->m;
    for (std::size_t i = 0; i < count; ++i) {
        float *z = scratch.z.data() + i * scratch.z_stride;
        scratch.s2[i] = scale_z(m, z);
        worker.mk.quantize(m, z, 127.0f, scratch.q2_row(i)); // times 127 / 127
    }
    worker.recorder.count(labels.swiglu, MOE_EP_CACHE_READ, count * m * sizeof(float));
    worker.recorder.count(labels.swiglu, MOE_EP_CACHE_WRITTEN, count * (m + kScaleBytes));
}

void second_product(Worker &worker, const PackedExpert &expert, std::size_t count, int32_t dtype,
                    const Labels &labels) {
    const Lap lap(worker.recorder, labels.gmm2, labels.expert);
    Scratch &scratch = worker.scratch;
    for (std::size_t i = 0; i < count; ++i) {
        scratch.operands[i] = scratch.q2_row(i);
    }
    multiply_down(worker, expert, count, scratch.operands.data(), scratch.s2.data(), dtype,
                  scratch.out.data());
    const ExpertShape &shape = *expert.shape;
    count_weights(worker, labels.gmm2, shape.down_panels * shape.down_panel_bytes, shape.h);
    worker.recorder.count(labels.gmm2, MOE_EP_CACHE_READ, count * (shape.m + kScaleBytes));
    worker.recorder.count(labels.gmm2, MOE_EP_MEMORY_WRITTEN, count * shape.h * kElementBytes);
}

// Rows 0..count-1 of scratch.x to scratch.out.
void apply_block(Worker &worker, const PackedExpert &expert, std::size_t count, int32_t dtype,
                 const Labels &labels) {
    first_product(worker, expert, count, labels);
    quantize_block(worker, expert, count, labels);
    second_product(worker, expert, count, dtype, labels);
}

} // namespace

void apply_expert(Worker &worker, std::size_t index, int32_t dtype, const Run *runs,
                  std::size_t run_count, std::size_t slot_bytes, std::size_t row_bytes) {
    const PackedExpert &expert = worker.engine.experts[index];
    const std::size_t h = expert.shape->h;
    const Labels labels = routed_labels(index);
    Scratch &scratch = worker.scratch;
    std::size_t run = 0, slot = 0;
    for (;;) {
        std::size_t count = 0;
        {
            const Lap lap(worker.recorder, labels.gather, labels.expert);
            while (run < run_count && count < worker.engine.block_rows) {
                if (slot == runs[run].count) {
                    ++run;
                    slot = 0;
                    continue;
                }
                const uint8_t *from = runs[run].slots + slot * slot_bytes;
                arrange(worker, h, reinterpret_cast<const int8_t *>(from), scratch.x_row(count));
                std::memcpy(&scratch.x_scale[count], from + h, kScaleBytes);
                scratch.out[count] = runs[run].rows + slot * row_bytes;
                ++slot;
                ++count;
            }
            worker.recorder.count(labels.gather, MOE_EP_MEMORY_READ, count * (h + kScaleBytes));
            worker.recorder.count(labels.gather, MOE_EP_CACHE_WRITTEN, count * (h + kScaleBytes));
        }
        if (count == 0) {
            return;
        }
        apply_block(worker, expert, count, dtype, labels);
    }
}

void apply_shared(Worker &worker, const moe_ep_call &call) {
    const std::size_t index = worker.engine.experts.local();
    const PackedExpert &expert = worker.engine.experts[index];
    const std::size_t h = expert.shape->h, rows = static_cast<std::size_t>(call.bs);
    const std::size_t row_bytes = h * kElementBytes;
    const Labels labels{MOE_EP_SHARED, MOE_EP_SHARED, MOE_EP_SHARED, MOE_EP_SHARED,
                        static_cast<int32_t>(index)};
    Scratch &scratch = worker.scratch;
    const uint8_t *x = static_cast<const uint8_t *>(call.x);
    uint8_t *out = static_cast<uint8_t *>(call.share_output);
    for (std::size_t begin = 0; begin < rows; begin += worker.engine.block_rows) {
        const std::size_t count = std::min(worker.engine.block_rows, rows - begin);
        {
            const Lap lap(worker.recorder, labels.gather, labels.expert);
            for (std::size_t i = 0; i < count; ++i) {
                scratch.x_scale[i] =
                    quantize_x(h, call.dtype, x + (begin + i) * row_bytes, call.share_smooth,
                               scratch.values.data(), scratch.bytes_row.data());
                arrange(worker, h, scratch.bytes_row.data(), scratch.x_row(i));
                scratch.out[i] = out + (begin + i) * row_bytes;
            }
            worker.recorder.count(labels.gather, MOE_EP_MEMORY_READ, count * row_bytes);
            worker.recorder.count(labels.gather, MOE_EP_CACHE_WRITTEN, count * (h + kScaleBytes));
        }
        apply_block(worker, expert, count, call.dtype, labels);
    }
}

} // namespace ep
} // namespace moe
