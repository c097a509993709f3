// With |fp32 score_e - exact score_e| <= error_e, an expert can belong to the choice only when
// score_e + error_e >= min over the chosen of (score_i - error_i). When that leaves exactly the
// chosen, in an order that no error can change, the choice is exact; otherwise the experts that
// remain are compared in double.
//
// error_e = dz * slope_e + rounding, where
//   dz        (n + 8) * 2^-24 * ||x|| * max ||r_e||: n roundings bound any order of summation
//             (Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 3.1, with
//             Cauchy-Schwarz); blocks of router_kc keep n at router_kc + D / router_kc, and the
//             32 partial sums of a single row at D / 32
//   slope_e   the largest derivative of the sigmoid within dz of z: a (1 - a) plus dz times the
//             largest second derivative (1 / (6 sqrt 3) < 0.0963), never above 1/4. This is what
//             keeps saturated scores, whose differences are small, from being recomputed
//   rounding  2^-21 (1 + max |bias|): the affinity's 4 * 2^-24, the sum's half ulp, and a reserve
#include "route.h"

#include <algorithm>
#include <cmath>

#include "candidate_kernels.h"

namespace moe {
namespace packed {
namespace {

struct ErrorBound {
    double dz;
    double rounding;

    double largest() const { return 0.25 * dz + rounding; }
    double of(double affinity) const {
        const double slope = affinity * (1.0 - affinity) + 0.0963 * dz + 0x1p-22;
        return dz * std::min(0.25, slope) + rounding;
    }
};

ErrorBound score_error(const moe_microkernels &mk, const RouterTable &table, const float *x) {
    const std::size_t d_model = static_cast<std::size_t>(table.d_model);
    const double blocks = std::ceil(static_cast<double>(d_model) / mk.router_kc);
    const double blocked = static_cast<double>(std::min(d_model, mk.router_kc)) + blocks;
    const double roundings = std::max(blocked, static_cast<double>(d_model) / 32.0) + 8.0;
    return {roundings * 0x1p-24 * norm_bound(mk, d_model, x) * table.largest_row_norm,
            score_rounding(table)};
}

// The experts that a choice is made from: all, or those listed in ascending order.
struct Considered {
    const int32_t *experts; // NULL: all
    int32_t count;

    int32_t expert(int32_t i) const { return experts == nullptr ? i : experts[i]; }
};

// Whether score_a before score_b: the larger first, the lower index among equals.
struct Before {
    const float *score;
    bool operator()(int32_t a, int32_t b) const {
        return score[a] > score[b] || (score[a] == score[b] && a < b);
    }
};

// Whether best[0..k) is the exact choice in the exact order.
bool is_certain(const moe_microkernels &mk, const ErrorBound &error, const RouteScratch &scratch,
                int32_t count, int32_t k, const int32_t *best) {
    const float *score = scratch.score.data();
    const float *affinity = scratch.affinity.data();
    for (int32_t i = 0; i + 1 < k; ++i) {
        const double gap = double{score[best[i]]} - score[best[i + 1]];
        if (!(gap > error.of(affinity[best[i]]) + error.of(affinity[best[i + 1]]))) {
            return false;
        }
    }
    if (k == count) {
        return true;
    }
    const double lowest = score[best[k - 1]] - error.of(affinity[best[k - 1]]);
    if (score[best[k]] + error.largest() < lowest) {
        return true;
    }
    // Someone may come near; only experts within the largest error can.
    const float near_by = std::nextafter(static_cast<float>(lowest - error.largest()), -HUGE_VALF);
    const std::size_t n = static_cast<std::size_t>(count);
    for (std::size_t e = mk.find_above(0, n, score, near_by); e < n;
         e = mk.find_above(e + 1, n, score, near_by)) {
        const bool chosen = std::find(best, best + k, static_cast<int32_t>(e)) != best + k;
        if (!chosen && score[e] + error.of(affinity[e]) >= lowest) {
            return false;
        }
    }
    return true;
}

// Compares in double the experts that the error leaves possible; replaces best[0..k).
void choose_in_double(const RouterTable &table, const ErrorBound &error, const float *x,
                      const Considered &considered, RouteScratch &scratch, int32_t *best) {
    const float *score = scratch.score.data();
    const float *affinity = scratch.affinity.data();
    double lowest = HUGE_VAL;
    for (int32_t i = 0; i < table.top_k; ++i) {
        lowest = std::min(lowest, score[best[i]] - error.of(affinity[best[i]]));
    }
    int32_t *possible = scratch.exact.order.data();
    double *exact = scratch.exact.score64.data();
    int32_t count = 0;
    for (int32_t i = 0; i < considered.count; ++i) {
        if (score[i] + error.of(affinity[i]) >= lowest) {
            const int32_t expert = considered.expert(i);
            possible[count++] = i;
            exact[i] = routing::ranked(routing::sigmoid64(routing::dot64(table, x, expert)) +
                                       table.bias[expert]);
        }
    }
    routing::rank(exact, possible, count, table.top_k);
    std::copy(possible, possible + table.top_k, best);
}

// Chooses among the experts considered, from scratch.affinity and scratch.score (in their order).
void choose(const moe_microkernels &mk, const RouterTable &table, const ErrorBound &error,
            const float *x, const Considered &considered, RouteScratch &scratch, int32_t *ids,
            float *gates) {
    int32_t best[kFastTopK + 1];
    const int32_t k = table.top_k;
    best_scores(mk, scratch.score.data(), considered.count, std::min(k + 1, considered.count),
                best);
    if (!is_certain(mk, error, scratch, considered.count, k, best)) {
        choose_in_double(table, error, x, considered, scratch, best);
    }
    float sum = 0.0f;
    for (int32_t i = 0; i < k; ++i) {
        ids[i] = considered.expert(best[i]);
        sum += scratch.affinity[static_cast<std::size_t>(best[i])];
    }
    if (sum < 1e-30f) {
        routing::gates_in_double(table, x, ids, scratch.exact, gates);
        return;
    }
    for (int32_t i = 0; i < k; ++i) {
        gates[i] = gate_of(table, scratch.affinity[static_cast<std::size_t>(best[i])], sum);
    }
}

void route_by_reference(const RouterTable &table, const float *x, const float *z,
                        RouteScratch &scratch, int32_t *ids, float *gates) {
    std::copy(z, z + table.num_experts, scratch.exact.z.data());
    route_token(table, x, scratch.exact, ids, gates);
}

} // namespace

double norm_bound(const moe_microkernels &mk, std::size_t n, const float *v) {
    // The sum's own roundings and underflow are inside the factor and the term.
    return 1.001 * std::sqrt(double{mk.sum_squares(n, v)}) + 1e-18;
}

double score_rounding(const RouterTable &table) { return 0x1p-21 * (1.0 + table.largest_bias); }

// By insertion: few scores exceed the worst of those kept.
void best_scores(const moe_microkernels &mk, const float *score, int32_t count, int32_t kept,
                 int32_t *best) {
    const Before before{score};
    for (int32_t e = 0; e < kept; ++e) {
        best[e] = e;
    }
    std::sort(best, best + kept, before);
    const std::size_t n = static_cast<std::size_t>(count);
    std::size_t e = mk.find_above(static_cast<std::size_t>(kept), n, score, score[best[kept - 1]]);
    while (e < n) {
        int32_t place = kept - 1;
        for (; place > 0 && score[best[place - 1]] < score[e]; --place) {
            best[place] = best[place - 1];
        }
        best[place] = static_cast<int32_t>(e);
        e = mk.find_above(e + 1, n, score, score[best[kept - 1]]);
    }
}

RouteScratch::RouteScratch(const moe_weights &w)
    : exact(w), affinity(static_cast<std::size_t>(w.num_experts)), score(affinity.size()),
      bias(affinity.size()) {}

void RouteScratch::zero() {
    exact.zero();
    affinity.zero();
    score.zero();
    bias.zero();
}

int64_t RouteScratch::bytes() const {
    return exact.bytes() + affinity.bytes() + score.bytes() + bias.bytes();
}

void route_row(const moe_microkernels &mk, const RouterTable &table, const float *x, const float *z,
               RouteScratch &scratch, int32_t *ids, float *gates) {
    const bool grouped = table.n_group > 1 && table.topk_group < table.n_group;
    const std::size_t experts = static_cast<std::size_t>(table.num_experts);
    const int finite = mk.sigmoid_scores(experts, z, table.bias, scratch.affinity.data(),
                                         scratch.score.data());
    const ErrorBound error = score_error(mk, table, x);
    if (!finite || !std::isfinite(error.dz) || grouped || table.softmax ||
        table.top_k > kFastTopK) {
        route_by_reference(table, x, z, scratch, ids, gates);
        return;
    }
    choose(mk, table, error, x, {nullptr, table.num_experts}, scratch, ids, gates);
}

bool route_few(const moe_microkernels &mk, const RouterTable &table, const float *x,
               const int32_t *experts, int32_t count, RouteScratch &scratch, int32_t *ids,
               float *gates) {
    const std::size_t d_model = static_cast<std::size_t>(table.d_model);
    const std::size_t few = static_cast<std::size_t>(count);
    for (std::size_t i = 0; i < few; ++i) {
        const std::size_t expert = static_cast<std::size_t>(experts[i]);
        scratch.exact.z[i] = mk.candidates->dot(d_model, x, table.router + expert * d_model);
        scratch.bias[i] = table.bias[expert];
    }
    const ErrorBound error = score_error(mk, table, x);
    if (!mk.sigmoid_scores(few, scratch.exact.z.data(), scratch.bias.data(),
                           scratch.affinity.data(), scratch.score.data()) ||
        !std::isfinite(error.dz)) {
        return false;
    }
    choose(mk, table, error, x, {experts, count}, scratch, ids, gates);
    return true;
}

} // namespace packed
} // namespace moe
