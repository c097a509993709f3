// Quantizing router and tokens to int16, the products, and the recheck of what they leave open.
#include "router_candidates.h"

#include <algorithm>
#include <cmath>

namespace moe {
namespace packed {
namespace {

constexpr double kRowNorm = 64800.0;   // ||q|| of a router row
constexpr float kTokenNorm = 32500.0f; // ||p|| of a token
constexpr double kSlack = 1.0 + 4e-6;

// Beyond these the scales would leave fp32's normal range: fp32 products instead.
constexpr double kSmallestRow = 0x1p-40;
constexpr double kLargestRow = 0x1p60;
constexpr float kSmallestToken = 0x1p-30f;
constexpr float kLargestToken = 0x1p60f;

// Where candidates pay, measured on a busy Sapphire Rapids VM with AVX2 code, as CPU time over that
// of fp32 for all (best of 60, one run a shape), 96 tokens, (E, D, K): (512, 512, 2) 0.76, (512,
// 2048, 8) 0.83, (128, 1024, 2) 0.87, (512, 256, 4) 0.91, (256, 2048, 8) 0.93; not (256, 256, 2)
// 1.05 and (64, 2048, 2) 1.02: too few products; (128, 2048, 8) 1.07: scoring the chosen again costs
// what is saved; (256, 7168, 8) 1.08: the bound grows with D and leaves 15 candidates. With 6 tokens
// the first one is 0.77.
constexpr int64_t kMinRouterValues = int64_t{1} << 17;
constexpr int32_t kMinExpertsPerChosen = 32;
constexpr int32_t kMaxModel = 4096;
constexpr int64_t kMinTokens = 6;

AlignedArray<float> zeros(std::size_t n) {
    AlignedArray<float> array(n);
    array.zero();
    return array;
}

double norm(const double *v, std::size_t n) {
    double squares = 0.0;
    for (std::size_t i = 0; i < n; ++i) {
        squares += v[i] * v[i];
    }
    return std::sqrt(squares);
}

} // namespace

void CandidateScratch::zero() {
    rows.zero();
    acc.zero();
    lower.zero();
    upper.zero();
    experts.zero();
}

int64_t CandidateScratch::bytes() const {
    return rows.bytes() + acc.bytes() + lower.bytes() + upper.bytes() + experts.bytes() +
           static_cast<int64_t>(tokens.size() * sizeof(moe_candidate_token));
}

bool candidates_pay(const moe_weights &w, int64_t tokens) {
    return tokens >= kMinTokens && w.d_model <= kMaxModel &&
           int64_t{w.num_experts} * w.d_model >= kMinRouterValues &&
           w.num_experts / kMinExpertsPerChosen >= w.top_k;
}

CandidateRouter::CandidateRouter(const moe_microkernels &mk, const moe_weights &w,
                                 const RouterTable &table, bool wanted)
    : mk_(mk), table_(table), d_model_(static_cast<std::size_t>(w.d_model)),
      experts_(static_cast<std::size_t>(w.num_experts)) {
    const bool grouped = table.n_group > 1 && table.topk_group < table.n_group;
    if (!wanted || mk.candidates == nullptr || grouped || table.softmax ||
        table.top_k > kFastTopK) {
        return;
    }
    const moe_candidate_kernels &kernels = *mk.candidates;
    const std::size_t panels = (experts_ + kernels.nr - 1) / kernels.nr;
    padded_ = panels * kernels.nr;
    panel_values_ = kernels.panel_values(d_model_);
    row_values_ = kernels.row_values(d_model_);
    panels_ = AlignedArray<int16_t>(panels * panel_values_);
    scale_ = zeros(padded_);
    norm_ = zeros(padded_);
    left_over_ = zeros(padded_);
    bias_ = zeros(padded_);
    std::copy(w.bias, w.bias + experts_, bias_.data());
    std::vector<std::vector<int16_t>> rows(kernels.nr, std::vector<int16_t>(d_model_));
    std::vector<const int16_t *> channels(kernels.nr);
    for (std::size_t p = 0; p < panels; ++p) {
        for (std::size_t c = 0; c < kernels.nr; ++c) {
            const std::size_t expert = p * kernels.nr + c;
            channels[c] = expert < experts_ ? rows[c].data() : nullptr;
            if (expert < experts_ && !quantize_row(w.router + expert * d_model_, expert, rows[c])) {
                return;
            }
        }
        kernels.pack_panel(d_model_, channels.data(), panels_.data() + p * panel_values_);
    }
    ready_ = true;
}

// Returns false for a row that is too large for the bound.
bool CandidateRouter::quantize_row(const float *row, std::size_t expert, std::vector<int16_t> &q) {
    std::vector<double> v(row, row + d_model_);
    const double row_norm = norm(v.data(), d_model_);
    if (!(row_norm <= kLargestRow)) {
        return false;
    }
    float scale = 0.0f; // a tiny row is all left over
    if (row_norm >= kSmallestRow) {
        double largest = 0.0;
        for (const double value : v) {
            largest = std::max(largest, std::fabs(value));
        }
        scale = static_cast<float>(std::max(row_norm / kRowNorm, largest / 32766.0) * kSlack);
    }
    std::vector<double> scaled(d_model_);
    for (std::size_t d = 0; d < d_model_; ++d) {
        q[d] = scale > 0.0f ? static_cast<int16_t>(std::nearbyint(v[d] / scale)) : int16_t{0};
        scaled[d] = double{scale} * q[d];
        v[d] -= scaled[d];
    }
    const double scaled_norm = norm(scaled.data(), d_model_);
    scale_[expert] = scale;
    norm_[expert] = static_cast<float>(scaled_norm * kSlack);
    left_over_[expert] =
        static_cast<float>((norm(v.data(), d_model_) + 0x1p-22 * scaled_norm) * kSlack);
    return true;
}

CandidateScratch CandidateRouter::scratch(std::size_t block_tokens) const {
    CandidateScratch scratch;
    if (!ready_) {
        return scratch;
    }
    scratch.block_tokens = block_tokens;
    const std::size_t mr = mk_.candidates->mr; // whole tiles of rows
    scratch.rows = AlignedArray<int16_t>((block_tokens + mr - 1) / mr * mr * row_values_);
    scratch.acc = AlignedArray<int32_t>(block_tokens * padded_);
    scratch.lower = AlignedArray<float>(padded_);
    scratch.upper = AlignedArray<float>(padded_);
    scratch.experts = AlignedArray<int32_t>(experts_);
    scratch.tokens.resize(block_tokens);
    return scratch;
}

void CandidateRouter::route(const float *x, std::size_t tokens, CandidateScratch &scratch,
                            RouteScratch &route, int32_t *ids, float *gates) const {
    const std::size_t top_k = static_cast<std::size_t>(table_.top_k);
    quantize_tokens(x, tokens, scratch);
    multiply(tokens, scratch);
    for (std::size_t t = 0; t < tokens; ++t) {
        const float *row = x + t * d_model_;
        scratch.count =
            find_candidates(scratch.acc.data() + t * padded_, scratch.tokens[t], scratch);
        if (scratch.count > 0 && route_few(mk_, table_, row, scratch.experts.data(), scratch.count,
                                           route, ids + t * top_k, gates + t * top_k)) {
            continue;
        }
        float *z = scratch.upper.data(); // its bounds have served
        for (std::size_t e = 0; e < experts_; ++e) {
            z[e] = mk_.candidates->dot(d_model_, row, table_.router + e * d_model_);
        }
        route_row(mk_, table_, row, z, route, ids + t * top_k, gates + t * top_k);
    }
}

void CandidateRouter::quantize_tokens(const float *x, std::size_t tokens,
                                      CandidateScratch &scratch) const {
    const float rounding = static_cast<float>(score_rounding(table_) * kSlack);
    for (std::size_t t = 0; t < tokens; ++t) {
        const float *row = x + t * d_model_;
        const float bound = static_cast<float>(norm_bound(mk_, d_model_, row) * kSlack);
        const bool usable = bound >= kSmallestToken && bound <= kLargestToken;
        // An unusable token is multiplied as zeros and has its own way afterwards.
        const float scale = usable ? bound / kTokenNorm : 0.0f;
        const float factor = usable ? 1.0f / scale : 0.0f;
        const float squares = mk_.candidates->quantize(d_model_, row, factor,
                                                       scratch.rows.data() + t * row_values_);
        const float left_over = scale * (1.001f * std::sqrt(squares) + 0.005f);
        scratch.tokens[t] = moe_candidate_token{scale, bound, left_over, rounding};
    }
}

void CandidateRouter::multiply(std::size_t tokens, CandidateScratch &scratch) const {
    const moe_candidate_kernels &kernels = *mk_.candidates;
    const std::size_t pairs = (d_model_ + 1) / 2;
    if (kernels.by_tiles) {
        mk_.configure_tiles(MOE_MAX_MR);
    }
    // A block of a panel stays in L1 while all tokens pass.
    for (std::size_t p = 0; p < padded_ / kernels.nr; ++p) {
        for (std::size_t k = 0; k < pairs; k += kernels.kc_pairs) {
            const std::size_t kc = std::min(kernels.kc_pairs, pairs - k);
            for (std::size_t t = 0; t < tokens; t += kernels.mr) {
                const int16_t *rows[MOE_MAX_MR];
                const std::size_t mr = std::min(kernels.mr, tokens - t);
                for (std::size_t m = 0; m < mr; ++m) {
                    rows[m] = scratch.rows.data() + (t + m) * row_values_ + 2 * k;
                }
                kernels.gemm(mr, kc, rows, panel(p) + 2 * k * kernels.nr, k == 0,
                             scratch.acc.data() + t * padded_ + p * kernels.nr, padded_);
            }
        }
    }
    if (kernels.by_tiles) {
        mk_.release_tiles();
    }
}

// Lists the candidates of a token in ascending order in scratch.experts; returns their number, 0
// when there is no bound or they are too many to pay.
int32_t CandidateRouter::find_candidates(const int32_t *acc, const moe_candidate_token &token,
                                         CandidateScratch &scratch) const {
    if (token.scale == 0.0f) {
        return 0;
    }
    const moe_candidate_rows rows{scale_.data(), norm_.data(), left_over_.data(), bias_.data()};
    mk_.candidates->score_bounds(experts_, acc, &rows, &token, scratch.lower.data(),
                                 scratch.upper.data());
    int32_t best[kFastTopK];
    best_scores(mk_, scratch.lower.data(), table_.num_experts, table_.top_k, best);
    const float threshold = scratch.lower[static_cast<std::size_t>(best[table_.top_k - 1])];
    const float below = std::nextafter(threshold, -HUGE_VALF);
    const std::size_t most = experts_ / 4;
    std::size_t count = 0;
    for (std::size_t e = mk_.find_above(0, experts_, scratch.upper.data(), below); e < experts_;
         e = mk_.find_above(e + 1, experts_, scratch.upper.data(), below)) {
        if (count == most) {
            return 0;
        }
        scratch.experts[count++] = static_cast<int32_t>(e);
    }
    return static_cast<int32_t>(count);
}

int64_t CandidateRouter::bytes() const {
    return panels_.bytes() + scale_.bytes() + norm_.bytes() + left_over_.bytes() + bias_.bytes();
}

} // namespace packed
} // namespace moe
