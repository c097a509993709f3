// Routing: router scores, the exact choice of K experts, and their gates.
//
// The choice equals the one made in double precision whatever the order of the fp32 sums: with m
// the bound of the error of an fp32 score, a choice whose neighbouring scores differ by more than
// 2m is certain; all experts that could belong to it are otherwise computed again in double.
// Order of the chosen: descending score, the lower index first among equals.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "aligned_array.h"
#include "moe_prof.h"

namespace moe {

// What routing needs per layer, computed once.
struct RouterTable {
    int32_t d_model;
    int32_t num_experts;
    int32_t top_k;
    const float *router; // (E, D)
    const float *bias;   // (E)
    bool softmax;
    int32_t n_group;
    int32_t topk_group;
    float scaling;
    bool raw_gates;
    double largest_row_norm; // max over experts of ||r_e||
    double largest_bias;     // max |bias|
};

// Buffers of one thread.
struct RouterScratch {
    explicit RouterScratch(const moe_weights &w)
        : z(static_cast<std::size_t>(w.num_experts)), affinity(z.size()), score(z.size()),
          z64(z.size()), score64(z.size()), order(z.size()),
          group_score(static_cast<std::size_t>(w.n_group)), group_order(group_score.size()) {}

    void zero() {
        z.zero();
        affinity.zero();
        score.zero();
        z64.zero();
        score64.zero();
        order.zero();
        group_score.zero();
        group_order.zero();
    }
    int64_t bytes() const {
        return z.bytes() + affinity.bytes() + score.bytes() + z64.bytes() + score64.bytes() +
               order.bytes() + group_score.bytes() + group_order.bytes();
    }

    AlignedArray<float> z;        // (E) router outputs, fp32
    AlignedArray<float> affinity; // (E)
    AlignedArray<double> score;   // (E) fp32 scores, widened
    AlignedArray<double> z64;     // (E) router outputs computed again, where needed
    AlignedArray<double> score64; // (E)
    AlignedArray<int32_t> order;  // (E) experts under consideration
    AlignedArray<double> group_score;  // (n_group)
    AlignedArray<int32_t> group_order; // (n_group)
};

static inline RouterTable make_router_table(const moe_weights &w) {
    RouterTable table{w.d_model,    w.num_experts, w.top_k, w.router,
                      w.bias,       w.score == MOE_SCORE_SOFTMAX,
                      w.n_group,    w.topk_group,  w.routed_scaling_factor,
                      w.raw_gates != 0, 0.0, 0.0};
    for (int32_t e = 0; e < w.num_experts; ++e) {
        const float *row = w.router + static_cast<int64_t>(e) * w.d_model;
        double squares = 0.0;
        for (int32_t d = 0; d < w.d_model; ++d) {
            squares += static_cast<double>(row[d]) * row[d];
        }
        // Rounded up generously: the bound must hold, a slightly larger one costs nothing.
        table.largest_row_norm = std::max(table.largest_row_norm, std::sqrt(squares) * (1 + 1e-9));
        table.largest_bias = std::max(table.largest_bias, std::fabs(double{w.bias[e]}));
    }
    return table;
}

// z_e = r_e . x, one sum per expert in the order of d: the reference's order.
static inline void router_dots(const RouterTable &table, const float *x, float *z) {
    for (int32_t e = 0; e < table.num_experts; ++e) {
        const float *row = table.router + static_cast<int64_t>(e) * table.d_model;
        float sum = 0.0f;
        for (int32_t d = 0; d < table.d_model; ++d) {
            sum += row[d] * x[d];
        }
        z[e] = sum;
    }
}

namespace routing {

static inline double dot64(const RouterTable &table, const float *x, int32_t expert) {
    const float *row = table.router + static_cast<int64_t>(expert) * table.d_model;
    double sum = 0.0;
    for (int32_t d = 0; d < table.d_model; ++d) {
        sum += static_cast<double>(row[d]) * x[d];
    }
    return sum;
}

static inline double sigmoid64(double z) { return 1.0 / (1.0 + std::exp(-z)); }

// log(sigmoid(z)) without overflow at either end.
static inline double log_sigmoid64(double z) {
    return z < 0.0 ? z - std::log1p(std::exp(z)) : -std::log1p(std::exp(-z));
}

// A NaN (only possible for non-finite input) ranks last instead of breaking the order.
static inline double ranked(double score) { return std::isnan(score) ? -HUGE_VAL : score; }

static inline void affinities(const RouterTable &table, const float *z, float *affinity) {
    const int32_t experts = table.num_experts;
    if (!table.softmax) {
        for (int32_t e = 0; e < experts; ++e) {
            affinity[e] = 1.0f / (1.0f + expf(-z[e]));
        }
        return;
    }
    float largest = z[0];
    for (int32_t e = 1; e < experts; ++e) {
        largest = z[e] > largest ? z[e] : largest;
    }
    float sum = 0.0f;
    for (int32_t e = 0; e < experts; ++e) {
        affinity[e] = expf(z[e] - largest);
        sum += affinity[e];
    }
    for (int32_t e = 0; e < experts; ++e) {
        affinity[e] /= sum;
    }
}

// Bound of |fp32 score - exact score| for any order of summation: (D + 8) roundings of the dot
// product, times the largest slope of the affinity, plus the roundings of exp, sum and bias.
static inline double score_error(const RouterTable &table, const float *x) {
    // Eight partial sums: this norm has no prescribed order, and a single chain would be slow.
    double partial[8] = {};
    int32_t d = 0;
    for (; d + 8 <= table.d_model; d += 8) {
        for (int32_t i = 0; i < 8; ++i) {
            partial[i] += static_cast<double>(x[d + i]) * x[d + i];
        }
    }
    for (; d < table.d_model; ++d) {
        partial[0] += static_cast<double>(x[d]) * x[d];
    }
    double squares = 0.0;
    for (const double part : partial) {
        squares += part;
    }
    const double slope = table.softmax ? 0.5 : 0.25;
    const double of_dot =
        slope * (table.d_model + 8.0) * 0x1p-24 * std::sqrt(squares) * table.largest_row_norm;
    const double of_sum = table.softmax ? (table.num_experts + 16.0) * 0x1p-24 : 0.0;
    return of_dot + of_sum + 0x1p-21 * (1.0 + table.largest_bias);
}

// Orders the first `kept` of order[0..count) by descending score, lower index first.
static inline void rank(const double *score, int32_t *order, int32_t count, int32_t kept) {
    std::partial_sort(order, order + kept, order + count, [score](int32_t a, int32_t b) {
        return score[a] > score[b] || (score[a] == score[b] && a < b);
    });
}

// Sum of the two best scores of each group; groups are runs of E / n_group experts.
static inline void score_groups(const RouterTable &table, const double *score, double *sums) {
    const int32_t size = table.num_experts / table.n_group;
    for (int32_t g = 0; g < table.n_group; ++g) {
        double best = -HUGE_VAL;
        double second = -HUGE_VAL;
        for (int32_t e = g * size; e < (g + 1) * size; ++e) {
            if (score[e] > best) {
                second = best;
                best = score[e];
            } else if (score[e] > second) {
                second = score[e];
            }
        }
        sums[g] = size == 1 ? best : best + second;
    }
}

// Writes the experts that may be chosen to order and returns how many; -1 when the groups kept
// depend on a difference of at most `margin` (a negative margin never does).
static inline int32_t eligible(const RouterTable &table, const double *score, double margin,
                               RouterScratch &scratch) {
    int32_t *order = scratch.order.data();
    if (table.n_group == 1 || table.topk_group == table.n_group) {
        for (int32_t e = 0; e < table.num_experts; ++e) {
            order[e] = e;
        }
        return table.num_experts;
    }
    double *sums = scratch.group_score.data();
    int32_t *groups = scratch.group_order.data();
    score_groups(table, score, sums);
    for (int32_t g = 0; g < table.n_group; ++g) {
        groups[g] = g;
    }
    const int32_t kept = table.topk_group;
    rank(sums, groups, table.n_group, kept + 1);
    if (sums[groups[kept - 1]] - sums[groups[kept]] <= margin) {
        return -1;
    }
    std::sort(groups, groups + kept);
    const int32_t size = table.num_experts / table.n_group;
    int32_t count = 0;
    for (int32_t i = 0; i < kept; ++i) {
        for (int32_t e = groups[i] * size; e < (groups[i] + 1) * size; ++e) {
            order[count++] = e;
        }
    }
    return count;
}

// Scores of all experts in double.
static inline void exact_scores(const RouterTable &table, const float *x, RouterScratch &scratch) {
    double *z = scratch.z64.data();
    double *score = scratch.score64.data();
    double largest = -HUGE_VAL;
    for (int32_t e = 0; e < table.num_experts; ++e) {
        z[e] = dot64(table, x, e);
        largest = z[e] > largest ? z[e] : largest;
    }
    double sum = 0.0;
    for (int32_t e = 0; e < table.num_experts; ++e) {
        score[e] = table.softmax ? std::exp(z[e] - largest) : sigmoid64(z[e]);
        sum += score[e];
    }
    for (int32_t e = 0; e < table.num_experts; ++e) {
        score[e] = ranked((table.softmax ? score[e] / sum : score[e]) + table.bias[e]);
    }
}

static inline void choose_exactly(const RouterTable &table, const float *x, RouterScratch &scratch,
                                  int32_t *ids) {
    exact_scores(table, x, scratch);
    const double *score = scratch.score64.data();
    const int32_t count = eligible(table, score, -1.0, scratch);
    int32_t *order = scratch.order.data();
    rank(score, order, count, table.top_k);
    std::copy(order, order + table.top_k, ids);
}

// The choice from fp32 scores; experts that the error could reorder are compared in double.
static inline void choose(const RouterTable &table, const float *x, RouterScratch &scratch,
                          int32_t *ids) {
    const double *score = scratch.score.data();
    const double margin = 2.0 * score_error(table, x);
    const int32_t count = eligible(table, score, 2.0 * margin, scratch);
    if (count < 0) {
        choose_exactly(table, x, scratch, ids);
        return;
    }
    int32_t *order = scratch.order.data();
    const int32_t k = table.top_k;
    rank(score, order, count, std::min(k + 1, count));
    bool certain = true;
    for (int32_t i = 0; i + 1 < std::min(k + 1, count); ++i) {
        certain = certain && score[order[i]] - score[order[i + 1]] > margin;
    }
    if (certain) {
        std::copy(order, order + k, ids);
        return;
    }
    if (table.softmax) { // its denominator needs every expert
        choose_exactly(table, x, scratch, ids);
        return;
    }
    const double lowest = score[order[k - 1]] - margin;
    int32_t *last = std::partition(order, order + count,
                                   [score, lowest](int32_t e) { return score[e] >= lowest; });
    double *exact = scratch.score64.data();
    for (int32_t *e = order; e != last; ++e) {
        exact[*e] = ranked(sigmoid64(dot64(table, x, *e)) + table.bias[*e]);
    }
    rank(exact, order, static_cast<int32_t>(last - order), k);
    std::copy(order, order + k, ids);
}

// The sum that softmax affinities have below their fraction stroke, as a logarithm.
static inline double log_softmax_sum(const RouterTable &table, const float *x, double *z) {
    double largest = -HUGE_VAL;
    for (int32_t e = 0; e < table.num_experts; ++e) {
        z[e] = dot64(table, x, e);
        largest = std::max(largest, z[e]);
    }
    double sum = 0.0;
    for (int32_t e = 0; e < table.num_experts; ++e) {
        sum += std::exp(z[e] - largest);
    }
    return largest + std::log(sum);
}

// Gates when the chosen affinities vanish in fp32: the same quotient through logarithms.
static inline void gates_in_double(const RouterTable &table, const float *x, const int32_t *ids,
                                   RouterScratch &scratch, float *gates) {
    if (table.raw_gates) {
        const double below = table.softmax ? log_softmax_sum(table, x, scratch.z64.data()) : 0.0;
        for (int32_t i = 0; i < table.top_k; ++i) {
            const double z = dot64(table, x, ids[i]);
            const double affinity = table.softmax ? std::exp(z - below) : sigmoid64(z);
            gates[i] = static_cast<float>(affinity) * table.scaling;
        }
        return;
    }
    double *weight = scratch.score64.data();
    double largest = -HUGE_VAL;
    for (int32_t i = 0; i < table.top_k; ++i) {
        const double z = dot64(table, x, ids[i]);
        weight[i] = table.softmax ? z : log_sigmoid64(z);
        largest = std::max(largest, weight[i]);
    }
    double sum = 0.0;
    for (int32_t i = 0; i < table.top_k; ++i) {
        weight[i] = std::exp(weight[i] - largest);
        sum += weight[i];
    }
    for (int32_t i = 0; i < table.top_k; ++i) {
        gates[i] = static_cast<float>(weight[i] / sum) * table.scaling;
    }
}

} // namespace routing

// The gate of a chosen expert: its affinity, over the sum of the chosen unless they stay raw.
static inline float gate_of(const RouterTable &table, float affinity, float sum) {
    return (table.raw_gates ? affinity : affinity / sum) * table.scaling;
}

// Chooses experts and gates of one token.
// x: (D) f32; z: (E) fp32 router outputs, in any summation order; ids, gates: (K), written.
static inline void route_from(const RouterTable &table, const float *x, const float *z,
                              RouterScratch &scratch, int32_t *ids, float *gates) {
    float *affinity = scratch.affinity.data();
    bool finite = true;
    for (int32_t e = 0; e < table.num_experts; ++e) {
        finite = finite && std::isfinite(z[e]);
    }
    if (!finite) {
        routing::choose_exactly(table, x, scratch, ids);
        routing::gates_in_double(table, x, ids, scratch, gates);
        return;
    }
    routing::affinities(table, z, affinity);
    for (int32_t e = 0; e < table.num_experts; ++e) {
        scratch.score[e] = affinity[e] + table.bias[e];
    }
    routing::choose(table, x, scratch, ids);
    float sum = 0.0f;
    for (int32_t i = 0; i < table.top_k; ++i) {
        sum += affinity[ids[i]];
    }
    if (sum < 1e-30f) {
        routing::gates_in_double(table, x, ids, scratch, gates);
        return;
    }
    for (int32_t i = 0; i < table.top_k; ++i) {
        gates[i] = gate_of(table, affinity[ids[i]], sum);
    }
}

// The same from scratch.z.
static inline void route_token(const RouterTable &table, const float *x, RouterScratch &scratch,
                               int32_t *ids, float *gates) {
    route_from(table, x, scratch.z.data(), scratch, ids, gates);
}

} // namespace moe
