// The thresholds by which the `dispatched` variant chooses its path, and the choice.
//
// Every constant was measured with the AVX2 path on an AMD EPYC VM (Zen 4, 3.7 GHz, 2 CPUs, 1 MiB L2
// each, 32 MiB L3), both ways interleaved; docs/kernel-experiments.md has the figures.
#pragma once

#include <cmath>
#include <cstdint>

#include "moe_prof.h"

namespace moe {
namespace packed {

enum class DispatchPath {
    kOneToken,     // one token, the calling thread alone: no region, no barrier
    kOneTokenTeam, // one token, every expert's panels shared out: one barrier
    kBlock,        // several tokens, the calling thread alone: no region, no barrier
    kFewTokens,    // several tokens, every expert's panels shared out: three barriers
    kByToken,      // several tokens, shared out; every thread does all for its own: no barrier
    kByExpert,     // many tokens grouped by expert, every expert owned by one thread: three barriers
};

constexpr const char *kDispatchPathNames[] = {"one_token", "one_token_team", "block",
                                              "few_tokens", "by_token", "by_expert"};

// A team pays from this many multiply-adds per thread. A region with a barrier costs 0.22 us. One
// thread against two: 38 k in all 1.31 / 1.48 us, 76 k 2.43 / 1.73, 125 k 2.47 / 1.78 (one token).
constexpr int64_t kMinMacsPerThread = 30'000;

// Up to this size (three matrices of int8) an expert stays in L2 while its rows pass, and reading it
// once more costs little. At 98 KB and 196 KB every path but by_token loses at 16 to 128 tokens (16
// tokens of 256,128,64,4: 78 against 120 us); at 1.5 MB by_token loses (8 tokens: 645 / 545 us).
constexpr int64_t kSmallExpertBytes = 512 * 1024;

// Up to this size all experts come from the caches, and by_token reads them in every thread. 6.4 MB,
// 128 tokens: 491 us against 661 by expert.
constexpr int64_t kCachedExpertsBytes = int64_t{16} << 20;

// Beyond it by_token pays while what is read more than once is at most this per multiply-add: 100 MB,
// 64 tokens (0.044) 574 / 635 us, 128 tokens (0.065) 1497 / 1446, 1024 tokens (0.125) 9715 / 8175.
constexpr double kExtraBytesPerMac = 0.05;

// Below this many tokens big experts are shared out by panels: 4 tokens of 1024,512,16,4 244 us
// against 319 by expert, 15 tokens 984 / 1038, 31 tokens 2041 / 2113; 31 of 2048,768,128,8 14.2 /
// 14.3 ms.
constexpr int32_t kManyTokens = 32;

// Experts that get one of n tokens when all are chosen equally often.
static inline double experts_touched(const moe_weights &w, double n) {
    const double missed = 1.0 - static_cast<double>(w.top_k) / w.num_experts;
    return w.num_experts * (1.0 - std::pow(missed, n)) + w.has_shared;
}

static inline DispatchPath dispatch_path(const moe_weights &w, int64_t tokens, int32_t threads) {
    const int64_t expert_bytes = 3 * int64_t{w.d_model} * w.d_ff;
    const int64_t expert_macs = tokens * (w.top_k + w.has_shared) * expert_bytes;
    const int64_t macs = expert_macs + tokens * w.num_experts * w.d_model;
    const bool team = threads > 1 && macs / threads >= kMinMacsPerThread;
    if (tokens == 1) {
        return team ? DispatchPath::kOneTokenTeam : DispatchPath::kOneToken;
    }
    if (!team) {
        return DispatchPath::kBlock;
    }
    if (expert_bytes <= kSmallExpertBytes && tokens >= threads) {
        const double n = static_cast<double>(tokens);
        const double again =
            (experts_touched(w, n / threads) * threads - experts_touched(w, n)) *
            static_cast<double>(expert_bytes);
        if ((w.num_experts + w.has_shared) * expert_bytes <= kCachedExpertsBytes ||
            again <= kExtraBytesPerMac * static_cast<double>(expert_macs)) {
            return DispatchPath::kByToken;
        }
    }
    return tokens < kManyTokens ? DispatchPath::kFewTokens : DispatchPath::kByExpert;
}

} // namespace packed
} // namespace moe
