// The seeded layer that moe_bench runs: weights, tokens, and the C API's view of them.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

#include "aligned_array.h"
#include "expert_array.h"
#include "moe_prof.h"
#include "options.h"

namespace bench {

class Layer {
public:
    // Throws std::bad_alloc.
    explicit Layer(const Options &options);

    const moe_weights &weights() const { return weights_; }
    const float *tokens() const { return tokens_.data(); }

    // Raw bytes, native byte order, in this order: router, bias, gate, up, down, gate_scale,
    // up_scale, down_scale (one f32 per expert), tokens. Returns an empty string or what failed.
    std::string dump(const std::string &path) const;

private:
    moe::AlignedArray<float> router_;
    moe::AlignedArray<float> bias_;
    ExpertArray gate_;
    ExpertArray up_;
    ExpertArray down_;
    moe::AlignedArray<float> gate_scale_;
    moe::AlignedArray<float> up_scale_;
    moe::AlignedArray<float> down_scale_;
    moe::AlignedArray<float> tokens_;
    moe_weights weights_;
};

} // namespace bench
