// The thresholds by which the `dispatched` variant chooses its path, and the choice.
//
// Every constant was measured with the AVX2 path on an AMD EPYC VM (Zen 4, 3.7 GHz, 2 CPUs, 1 MiB L2
// each, 32 MiB L3), both ways interleaved; docs/kernel-experiments.md has the figures.
#pragma once

#include <cstdint>

#include "moe_prof.h"

namespace moe {
namespace packed {

enum class DispatchPath {
    kOneToken,     // one token, the calling thread alone: no region, no barrier
    kOneTokenTeam, // one token, every expert's panels shared out: one barrier
    kBlock,        // several tokens, the calling thread alone: no region, no barrier
    kFewTokens,    // several tokens, every expert's panels shared out: three or four barriers
    kByToken,      // many tokens, shared out; every thread does all for its own: no barrier
    kByExpert,     // many tokens grouped by expert, every expert owned by one thread: three barriers
};

constexpr const char *kDispatchPathNames[] = {"one_token", "one_token_team", "block",
                                              "few_tokens", "by_token", "by_expert"};

// A team pays from this many multiply-adds per thread. A region with a barrier costs 0.25 us, as
// much as 20 k of them.
constexpr int64_t kMinMacsPerThread = 40'000;

// Below this many tokens an expert gets about one: panels are shared out instead of experts.
constexpr int32_t kManyTokens = 16;

// From this many rows per expert and thread on every thread reads all experts for its own tokens:
// the weights come from the caches at less than the cost of handing results from core to core.
constexpr double kMinRowsPerExpert = 4.0;

static inline DispatchPath dispatch_path(const moe_weights &w, int64_t tokens, int32_t threads) {
    const int64_t experts = int64_t{w.top_k} + w.has_shared;
    const int64_t macs = tokens * (experts * 3 * w.d_model * w.d_ff +
                                   int64_t{w.num_experts} * w.d_model);
    const bool team = threads > 1 && macs / threads >= kMinMacsPerThread;
    if (tokens == 1) {
        return team ? DispatchPath::kOneTokenTeam : DispatchPath::kOneToken;
    }
    if (!team) {
        return DispatchPath::kBlock;
    }
    if (tokens < kManyTokens) {
        return DispatchPath::kFewTokens;
    }
    const double rows = static_cast<double>(tokens * experts) /
                        (static_cast<double>(w.num_experts + w.has_shared) * threads);
    return rows >= kMinRowsPerExpert ? DispatchPath::kByToken : DispatchPath::kByExpert;
}

} // namespace packed
} // namespace moe
