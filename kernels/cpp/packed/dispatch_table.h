// The thresholds by which the `dispatched` variant chooses its path, and the choice.
//
// Every constant was measured on an AMD EPYC VM (Zen 4, 3.7 GHz, 2 CPUs, 1 MiB L2 each, 32 MiB L3)
// with 2 threads, all ways interleaved, on the AVX2 path unless another is named; but for the thresholds of
// avx_vnni and amx_int8, which no CPU at hand has: they are derived.
//
// What runs on the AMX path: one token by vpdpbusd, bound by reading weights (rows__amx_int8.h), small layers
// by one thread, larger ones by a team whose threads have the same panels of every expert in every forward, so
// that these stay in the L2 of one core; several tokens by tiles wherever an expert gets three rows or more.
// Two small buckets are not put into one call: four accumulators, which is what a pair would give, come from
// two panels of the same expert (qu8s8_gemm_16x32c64__amx_int8.cpp), and a reorder window of 512 instructions
// holds too little of one bucket's conversions to hide them behind another's products.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

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

// What differs between instruction-set paths: the faster the arithmetic, the less may be read again.
struct DispatchThresholds {
    const char *isa;
    // by_token reads an expert in every thread that has a token for it; it pays while what is read
    // more than once is at most so many bytes per multiply-add. Cached: all experts together have at
    // most kCachedExpertsBytes.
    double again_cached, again_far;
};

// avx2: 6.4 MB, 128 tokens (0.10) 491 us against 661 by expert; 1.7 MB, 4 tokens (0.20) 17.2 / 18.3;
//   100 MB, 64 tokens (0.044) 574 / 635, 128 tokens (0.065) 1497 / 1446, 1024 tokens (0.125) 9715 /
//   8175.
// avx512_vnni: 6.4 MB, 16 tokens (0.14) 54.7 / 65.4; 1.7 MB, 31 tokens (0.11) 63.6 / 65.6, 4 tokens
//   (0.20) 15.5 / 12.9; 100 MB, 31 tokens (0.01) 158 / 186, 64 tokens (0.044) 528 / 488.
// Not measured: a byte read again costs the same time on every path, so that the thresholds go down as the
// rate of multiply-adds goes up: bytes times rate are 28 and 35 (cached), 5.7 and 4.7 (far) per ns on the two
// paths measured, at 114 and 236 multiply-adds per ns. avx_vnni: 55 per cycle (docs/instruction-tables.md) at
// 3.5 GHz. amx_int8: 330 per cycle, conversions included, in buckets of 32 rows, at 3 GHz; and a bucket that
// is cut has smaller tiles.
constexpr DispatchThresholds kDispatchThresholds[] = {
    {"avx512_vnni", 0.15, 0.02},
    {"amx_int8", 0.03, 0.005},
    {"avx_vnni", 0.16, 0.027},
    {"avx2", 0.25, 0.05},
};

static inline const DispatchThresholds &dispatch_thresholds(const char *isa) {
    for (const DispatchThresholds &row : kDispatchThresholds) {
        if (std::strcmp(row.isa, isa) == 0) {
            return row;
        }
    }
    return kDispatchThresholds[0]; // a faster path that was not measured
}

// A team pays when it saves 2.5 times the cost of a region with a barrier, which the plan measures:
// from 0.2 us up to 0.7 us on the same VM, as the host placed its CPUs. The limits keep the choice
// from depending on a busy moment. At 0.2 us, one thread against two: 75 k multiply-adds 2.43 /
// 1.73 us, 38 k 1.31 / 1.48; at 0.7 us (avx512_vnni) 299 k 3.81 / 3.90, 495 k 6.29 / 5.32.
constexpr double kRegionsSaved = 2.5;
constexpr double kMacsPerNs = 100.0;
constexpr double kLeastRegionNs = 150.0, kMostRegionNs = 800.0;

// Up to this size (three matrices of int8) an expert stays in L2 while its rows pass, and reading it
// once more costs little. At 98 KB every path but by_token loses with 16 tokens of 256,128,64,4 (78
// against 120 us); at 1.5 MB by_token loses (8 tokens: 645 / 545 us).
constexpr int64_t kSmallExpertBytes = 512 * 1024;
constexpr int64_t kCachedExpertsBytes = int64_t{16} << 20;

// Below this many tokens big experts are shared out by panels: 4 tokens of 1024,512,16,4 244 us
// against 319 by expert, 15 tokens 984 / 1038, 31 tokens 2041 / 2113; avx512_vnni 470 / 521 and 779 /
// 898.
constexpr int32_t kManyTokens = 32;

// Experts that get one of n tokens when all are chosen equally often.
static inline double experts_touched(const moe_weights &w, double n) {
    const double missed = 1.0 - static_cast<double>(w.top_k) / w.num_experts;
    return w.num_experts * (1.0 - std::pow(missed, n)) + w.has_shared;
}

// region_ns: what a region with a barrier costs.
static inline DispatchPath dispatch_path(const moe_weights &w, const DispatchThresholds &table,
                                         double region_ns, int64_t tokens, int32_t threads) {
    const int64_t expert_bytes = 3 * int64_t{w.d_model} * w.d_ff;
    const int64_t expert_macs = tokens * (w.top_k + w.has_shared) * expert_bytes;
    const int64_t macs = expert_macs + tokens * w.num_experts * w.d_model;
    const double cost_ns = std::min(std::max(region_ns, kLeastRegionNs), kMostRegionNs);
    const double saved_ns = static_cast<double>(macs) / kMacsPerNs * (1.0 - 1.0 / threads);
    const bool team = saved_ns > kRegionsSaved * cost_ns;
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
        const bool cached = (w.num_experts + w.has_shared) * expert_bytes <= kCachedExpertsBytes;
        if (again <= (cached ? table.again_cached : table.again_far) *
                         static_cast<double>(expert_macs)) {
            return DispatchPath::kByToken;
        }
    }
    return tokens < kManyTokens ? DispatchPath::kFewTokens : DispatchPath::kByExpert;
}

} // namespace packed
} // namespace moe
