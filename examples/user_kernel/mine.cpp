// A kernel of your own behind the plan API of moe_prof.h: token by token on one thread, in double
// where the choice of experts depends on it, with one optimisation: activations are widened to int16
// once, so that the compiler turns the int8 products into multiply-adds of pairs (pmaddwd).
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <new>
#include <numeric>
#include <vector>

#include "moe_prof.h"

struct moe_plan {
    explicit moe_plan(const moe_weights &weights)
        : w(weights), score(weights.num_experts), order(weights.num_experts), z(weights.num_experts),
          gates(weights.top_k), groups(weights.n_group), best(weights.n_group), x_q(weights.d_model),
          h(weights.d_ff), h_q(weights.d_ff) {}

    moe_weights w; // the arrays that it points to outlive the plan
    std::vector<double> score;
    std::vector<int32_t> order;
    std::vector<double> z, gates;
    std::vector<int32_t> groups;
    std::vector<double> best; // of each group, the sum of its two best scores
    std::vector<int16_t> x_q;
    std::vector<float> h;
    std::vector<int16_t> h_q;
};

namespace {

int32_t dot(const int8_t *weights, const int16_t *values, int32_t size) {
    int32_t sum = 0; // 2^31 holds 132104 products of -128 and 127
    for (int32_t i = 0; i < size; ++i) {
        sum += weights[i] * values[i];
    }
    return sum;
}

// To -127..127 with one scale, which is returned; rows below 2^-100 become zeros.
float quantize(const float *values, int32_t size, int16_t *quantized) {
    float largest = 0.0f;
    for (int32_t i = 0; i < size; ++i) {
        largest = std::max(largest, std::fabs(values[i]));
    }
    if (!(largest >= 0x1p-100f)) {
        std::fill_n(quantized, size, int16_t{0});
        return 0.0f;
    }
    const float inverse = 127.0f / largest;
    for (int32_t i = 0; i < size; ++i) {
        quantized[i] = static_cast<int16_t>(std::nearbyint(values[i] * inverse));
    }
    return largest / 127.0f;
}

void keep_best_groups(moe_plan &p) {
    const int32_t size = p.w.num_experts / p.w.n_group;
    for (int32_t g = 0; g < p.w.n_group; ++g) {
        double first = -HUGE_VAL, second = size == 1 ? 0.0 : -HUGE_VAL;
        for (int32_t e = g * size; e < (g + 1) * size; ++e) {
            second = std::max(second, std::min(first, p.score[e]));
            first = std::max(first, p.score[e]);
        }
        p.best[g] = first + (size == 1 ? 0.0 : second);
    }
    std::iota(p.groups.begin(), p.groups.end(), 0);
    std::stable_sort(p.groups.begin(), p.groups.end(),
                     [&](int32_t a, int32_t b) { return p.best[a] > p.best[b]; });
    for (int32_t i = p.w.topk_group; i < p.w.n_group; ++i) {
        std::fill_n(p.score.begin() + p.groups[i] * size, size, -HUGE_VAL);
    }
}

// The K experts first in p.order, and p.gates.
void route(moe_plan &p, const float *x) {
    const moe_weights &w = p.w;
    for (int32_t e = 0; e < w.num_experts; ++e) {
        const float *row = w.router + int64_t{e} * w.d_model;
        p.z[e] = std::inner_product(row, row + w.d_model, x, 0.0, std::plus<double>(),
                                    [](double a, double b) { return a * b; });
    }
    const bool softmax = w.score == MOE_SCORE_SOFTMAX;
    const double largest = *std::max_element(p.z.begin(), p.z.end());
    double sum = 0.0;
    for (int32_t e = 0; e < w.num_experts; ++e) {
        p.score[e] = softmax ? std::exp(p.z[e] - largest) : 1.0 / (1.0 + std::exp(-p.z[e]));
        sum += p.score[e];
    }
    for (int32_t e = 0; e < w.num_experts; ++e) {
        p.score[e] = (softmax ? p.score[e] / sum : p.score[e]) + w.bias[e];
    }
    if (w.topk_group < w.n_group) {
        keep_best_groups(p);
    }
    std::iota(p.order.begin(), p.order.end(), 0);
    std::stable_sort(p.order.begin(), p.order.end(),
                     [&](int32_t a, int32_t b) { return p.score[a] > p.score[b]; });
    // Gates: affinities of the chosen over their sum, through logarithms so that none vanishes.
    double top = -HUGE_VAL, total = 0.0;
    for (int32_t i = 0; i < w.top_k; ++i) {
        const double z = p.z[p.order[i]];
        p.gates[i] = softmax ? z : std::min(z, 0.0) - std::log1p(std::exp(-std::fabs(z)));
        top = std::max(top, p.gates[i]);
    }
    for (double &gate : p.gates) {
        gate = std::exp(gate - top);
        total += gate;
    }
    if (w.raw_gates) { // the affinities themselves
        total = softmax ? std::exp(largest - top) * sum : std::exp(-top);
    }
    for (double &gate : p.gates) {
        gate = gate / total * w.routed_scaling_factor;
    }
}

// y += gate * FFN of one expert.
void add_expert(moe_plan &p, int32_t expert, float gate, float x_scale, float *y) {
    const moe_weights &w = p.w;
    const int64_t matrix = int64_t{w.d_model} * w.d_ff;
    const float *gate_scale = w.gate_scale + int64_t{expert} * w.d_ff;
    const float *up_scale = w.up_scale + int64_t{expert} * w.d_ff;
    const float *down_scale = w.down_scale + int64_t{expert} * w.d_model;
    for (int32_t f = 0; f < w.d_ff; ++f) {
        const int64_t row = expert * matrix + int64_t{f} * w.d_model;
        const float g = dot(w.gate + row, p.x_q.data(), w.d_model) * (x_scale * gate_scale[f]);
        const float u = dot(w.up + row, p.x_q.data(), w.d_model) * (x_scale * up_scale[f]);
        p.h[f] = g / (1.0f + std::exp(-g)) * u;
    }
    const float h_scale = quantize(p.h.data(), w.d_ff, p.h_q.data());
    for (int32_t d = 0; d < w.d_model; ++d) {
        const int8_t *row = w.down + expert * matrix + int64_t{d} * w.d_ff;
        y[d] += gate * (dot(row, p.h_q.data(), w.d_ff) * (h_scale * down_scale[d]));
    }
}

} // namespace

int32_t moe_abi_version(void) { return MOE_ABI_VERSION; }
int32_t moe_variant_count(void) { return 1; }
const char *moe_variant_name(int32_t index) { return index == 0 ? "mine" : nullptr; }
const char *moe_status_text(int32_t status) {
    return status == MOE_OK ? "ok" : status == MOE_NO_MEMORY ? "not enough memory" : "refused";
}

int32_t moe_plan_create(const moe_weights *weights, const moe_options *options, moe_plan **plan) {
    if (options->variant != nullptr && std::strcmp(options->variant, "mine") != 0) {
        return MOE_UNKNOWN_VARIANT;
    }
    try {
        *plan = new moe_plan(*weights);
    } catch (const std::bad_alloc &) {
        return MOE_NO_MEMORY;
    }
    return MOE_OK;
}

int32_t moe_plan_forward(moe_plan *plan, const float *x, float *y, int64_t num_tokens) {
    const moe_weights &w = plan->w;
    for (int64_t t = 0; t < num_tokens; ++t, x += w.d_model, y += w.d_model) {
        route(*plan, x);
        const float scale = quantize(x, w.d_model, plan->x_q.data());
        for (int32_t d = 0; d < w.d_model; ++d) {
            y[d] = w.has_residual ? x[d] : 0.0f;
        }
        if (w.has_shared) {
            add_expert(*plan, w.num_experts, 1.0f, scale, y);
        }
        for (int32_t i = 0; i < w.top_k; ++i) {
            add_expert(*plan, plan->order[i], static_cast<float>(plan->gates[i]), scale, y);
        }
    }
    return MOE_OK;
}

int32_t moe_plan_info(const moe_plan *plan, moe_info *info) {
    *info = {};
    std::snprintf(info->variant, sizeof info->variant, "mine");
    std::snprintf(info->isa, sizeof info->isa, "native");
    std::snprintf(info->microkernel, sizeof info->microkernel, "int16 dot products by the compiler");
    info->threads = 1;
    info->max_tokens = INT32_MAX >> 7; // any: one token is computed at a time
    const moe_weights &w = plan->w;
    info->weight_bytes = (w.num_experts + w.has_shared) * int64_t{3} * w.d_model * w.d_ff;
    return MOE_OK;
}

void moe_plan_destroy(moe_plan *plan) { delete plan; }
int32_t moe_plan_routing(const moe_plan *, int32_t *, float *, int64_t) { return MOE_UNSUPPORTED; }
int32_t moe_plan_timers(moe_plan *, int32_t, int32_t, uint64_t *, uint64_t *, uint64_t *,
                        uint64_t *) {
    return MOE_UNSUPPORTED;
}
