// The router for many experts and tokens: int16 products narrow the choice to a few candidates,
// which are then scored as everywhere else (fp32, double where fp32 cannot tell), so that the ids
// are those of route_row and route_token always.
//
// Quantization. Row r of an expert is about s q with q int16, and token x is about t p with p int16.
// Both scales are set by the norm, not by the largest value: ||q|| <= 64800 + sqrt(D) / 2 and ||p||
// <= 32500 * 1.0001 + sqrt(D) / 2. For D <= kMaxReduction the product of these is below 2^31, so by
// Cauchy-Schwarz |q . p| < 2^31 and an int32 sum modulo 2^32 is q . p exactly. (int8 keeps too
// little: with 127 steps up to the largest value of a token the bound below leaves 28.5 experts of
// 512 per token of S4, int16 leaves 2.1, and vpmaddwd on int16 does as many products per operation
// as the exact int8 sequence.)
//
// Bound. z = r . x is to be told from Z = s t (q . p):
//     z - Z = (s q) . (x - t p) + (r - s q) . x
//     |z - Z| <= ||s q|| ||x - t p|| + ||r - s q|| ||x||              (Cauchy-Schwarz, twice)
// ||s q|| and ||r - s q|| are computed in double at prepare, ||x|| is norm_bound's. For ||x - t p||
// with f = fl(1 / t) and u = fl(x f): x / t = u (1 + d), |d| <= 2.01 * 2^-24 (one rounding of f, one
// of the product), and p = rint(u), so that
//     ||x - t p|| = t ||x / t - p|| <= t (||u - p|| + 2^-22.9 ||u||) <= t (||u - p|| + 0.005)
// where u - p is exact in fp32. Underflow of a product x f costs less than 2^-126 and sits in the
// reserve between 2^-22.9 * 32504 < 0.0042 and 0.005.
// Z itself is computed as fl(fl(q . p) fl(s t)): three roundings, at most 3.01 * 2^-24 |Z|, where
// |Z| <= ||s q|| ||t p|| and ||t p|| <= 1.01 ||x||bound. They are paid by adding 2^-22 ||s q|| to
// the stored ||r - s q||. All stored norms are multiplied by 1 + 4e-6, which pays for the fp32
// roundings of the bound's own formula and for the double roundings of the order compared with.
//
// From dz, the bound of |z - Z|, follows that of the score as in route.cpp: with a = sigmoid(Z),
//     |score - (a + bias)| <= dz min(1/4, a (1 - a) + 0.0963 dz + 2^-22) + 2^-21 (1 + max |bias|)
// Let L be the K-th largest lower bound. Some K experts have exact scores >= L, so whoever is chosen
// has an exact score >= L and hence an upper bound >= L: the candidates (upper >= L) hold every
// expert that the exact choice can contain, ties included. All equal experts are candidates
// together, so the lower index wins among them as it does among all.
#pragma once

#include <vector>

#include "candidate_kernels.h"
#include "route.h"

namespace moe {
namespace packed {

// Buffers of one thread.
struct CandidateScratch {
    std::size_t block_tokens = 0; // most tokens at once
    AlignedArray<int16_t> rows;   // (block_tokens, row_values)
    AlignedArray<int32_t> acc;    // (block_tokens, E padded)
    AlignedArray<float> lower;    // (E padded)
    AlignedArray<float> upper;    // (E padded)
    AlignedArray<int32_t> experts; // (E) the candidates of the last token, in ascending order
    int32_t count = 0;             // of them; 0: all experts were scored in fp32
    std::vector<moe_candidate_token> tokens; // (block_tokens); scale 0: no bound could be made

    void zero();
    int64_t bytes() const;
};

// Whether forwards of that many tokens are faster with candidates than with fp32 products for all.
bool candidates_pay(const moe_weights &w, int64_t tokens);

class CandidateRouter {
public:
    // Keeps references to mk and table.
    CandidateRouter(const moe_microkernels &mk, const moe_weights &w, const RouterTable &table,
                    bool wanted);

    // Whether it can route: wanted, and the path, the layer's options and the rows' sizes allow it.
    bool ready() const { return ready_; }

    // Buffers for blocks of that many tokens; empty when not ready.
    CandidateScratch scratch(std::size_t block_tokens) const;

    // x: (tokens, D) f32, tokens <= block_tokens; ids, gates: (tokens, K), written. A token's choice
    // and gates don't depend on the other tokens.
    void route(const float *x, std::size_t tokens, CandidateScratch &scratch, RouteScratch &route,
               int32_t *ids, float *gates) const;

    int64_t bytes() const;

private:
    bool quantize_row(const float *row, std::size_t expert, std::vector<int16_t> &q);
    void quantize_tokens(const float *x, std::size_t tokens, CandidateScratch &scratch) const;
    void multiply(std::size_t tokens, CandidateScratch &scratch) const;
    int32_t find_candidates(const int32_t *acc, const moe_candidate_token &token,
                            CandidateScratch &scratch) const;
    const int16_t *panel(std::size_t p) const { return panels_.data() + p * panel_values_; }

    const moe_microkernels &mk_;
    const RouterTable &table_;
    const std::size_t d_model_, experts_;
    bool ready_ = false;
    std::size_t padded_ = 0, panel_values_ = 0, row_values_ = 0;
    AlignedArray<int16_t> panels_;
    AlignedArray<float> scale_, norm_, left_over_, bias_; // (E padded) each
};

} // namespace packed
} // namespace moe
