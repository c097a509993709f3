// Making the seeded layer, writing it to a file, and the C API's pointers into it.
#include "layer.h"

#include <cerrno>
#include <cstring>

#include "random_inputs.h"

namespace bench {

namespace {

// One scale per expert, repeated for each of its `width` output channels.
void fill_scales(uint64_t seed, moe::Stream stream, int32_t fan_in, std::size_t width,
                 moe::AlignedArray<float> *scales) {
    for (std::size_t i = 0; i < scales->size(); ++i) {
        (*scales)[i] =
            moe::random_scale(seed, stream, static_cast<int64_t>(i / width), fan_in);
    }
}

template <class Array> bool write_all(std::FILE *file, const Array &values) {
    return std::fwrite(values.data(), sizeof *values.data(), values.size(), file) ==
           values.size();
}

bool write_first_of_each(std::FILE *file, const moe::AlignedArray<float> &scales,
                         std::size_t width) {
    for (std::size_t i = 0; i < scales.size(); i += width) {
        if (std::fwrite(&scales[i], sizeof(float), 1, file) != 1) {
            return false;
        }
    }
    return true;
}

} // namespace

Layer::Layer(const Options &o) {
    const std::size_t d = static_cast<std::size_t>(o.d_model);
    const std::size_t h = static_cast<std::size_t>(o.d_ff);
    const std::size_t experts = static_cast<std::size_t>(o.num_experts);
    const std::size_t stored = experts + (o.no_shared ? 0 : 1);
    const std::size_t distinct = static_cast<std::size_t>(o.distinct_experts);
    router_ = moe::AlignedArray<float>(experts * d);
    bias_ = moe::AlignedArray<float>(experts);
    gate_ = ExpertArray(stored, d * h, distinct);
    up_ = ExpertArray(stored, d * h, distinct);
    down_ = ExpertArray(stored, d * h, distinct);
    gate_scale_ = moe::AlignedArray<float>(stored * h);
    up_scale_ = moe::AlignedArray<float>(stored * h);
    down_scale_ = moe::AlignedArray<float>(stored * d);
    tokens_ = moe::AlignedArray<float>(static_cast<std::size_t>(o.num_tokens) * d);

    moe::fill_router(o.seed, o.num_experts, o.d_model, router_.data());
    if (o.softmax) {
        bias_.zero(); // its affinities are of the order of 1 / E: biases would decide alone
    } else {
        moe::fill_bias(o.seed, o.num_experts, bias_.data());
    }
    moe::fill_int8(o.seed, moe::Stream::kGate, gate_.distinct_size(), gate_.data());
    moe::fill_int8(o.seed, moe::Stream::kUp, up_.distinct_size(), up_.data());
    moe::fill_int8(o.seed, moe::Stream::kDown, down_.distinct_size(), down_.data());
    fill_scales(o.seed, moe::Stream::kGateScale, o.d_model, h, &gate_scale_);
    fill_scales(o.seed, moe::Stream::kUpScale, o.d_model, h, &up_scale_);
    fill_scales(o.seed, moe::Stream::kDownScale, o.d_ff, d, &down_scale_);
    moe::fill_tokens(o.seed, o.num_tokens, o.d_model, tokens_.data());

    weights_ = {};
    weights_.d_model = o.d_model;
    weights_.d_ff = o.d_ff;
    weights_.num_experts = o.num_experts;
    weights_.top_k = o.top_k;
    weights_.router = router_.data();
    weights_.bias = bias_.data();
    weights_.gate = gate_.data();
    weights_.up = up_.data();
    weights_.down = down_.data();
    weights_.gate_scale = gate_scale_.data();
    weights_.up_scale = up_scale_.data();
    weights_.down_scale = down_scale_.data();
    weights_.score = o.softmax ? MOE_SCORE_SOFTMAX : MOE_SCORE_SIGMOID;
    weights_.n_group = o.n_group;
    weights_.topk_group = o.topk_group;
    weights_.routed_scaling_factor = static_cast<float>(o.scaling_factor);
    weights_.has_shared = o.no_shared ? 0 : 1;
    weights_.has_residual = o.no_residual ? 0 : 1;
    weights_.raw_gates = o.raw_gates ? 1 : 0;
}

std::string Layer::dump(const std::string &path) const {
    std::FILE *file = std::fopen(path.c_str(), "wb");
    if (file == nullptr) {
        return "cannot write " + path + ": " + std::strerror(errno);
    }
    const std::size_t d = static_cast<std::size_t>(weights_.d_model);
    const std::size_t h = static_cast<std::size_t>(weights_.d_ff);
    bool good = write_all(file, router_) && write_all(file, bias_) && write_all(file, gate_) &&
                write_all(file, up_) && write_all(file, down_) &&
                write_first_of_each(file, gate_scale_, h) &&
                write_first_of_each(file, up_scale_, h) &&
                write_first_of_each(file, down_scale_, d) && write_all(file, tokens_);
    good = std::fclose(file) == 0 && good;
    return good ? "" : "cannot write " + path + ": " + std::strerror(errno);
}

} // namespace bench
