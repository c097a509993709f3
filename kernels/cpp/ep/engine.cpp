// Making an engine and saying what it runs.
#include "engine.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <new>

#include "../packed/path.h"

namespace {

using moe::ep::Experts;
using moe::ep::kMaxBlockRows;

// What a thread keeps of a block should leave room for the panel that streams by: of the 1 MB and more
// of L2 that current server cores have. Fewer than a tile's rows would cost more than they save.
constexpr std::size_t kBlockBytes = 512 * 1024;
constexpr int32_t kMaxReduction = INT32_MAX / (127 * 128); // no int32 sum of more can overflow

std::size_t rows_in_cache(const moe_microkernels &mk, const Experts &experts) {
    const std::size_t m = std::max(experts.routed.m, experts.shared.m);
    const std::size_t row = mk.row_bytes(experts.routed.h) + mk.row_bytes(m) + m * sizeof(float);
    const std::size_t tiles = std::max<std::size_t>(1, kBlockBytes / row / mk.mr);
    return std::min(kMaxBlockRows, tiles * mk.mr);
}

// Rows at an odd number of lines: a power of two would put all of them into one set of L1. A path with
// tiles has such rows by itself.
std::size_t spread(std::size_t row_bytes) { return row_bytes % 128 == 0 ? row_bytes + 64 : row_bytes; }

std::size_t row_distance(const moe_microkernels &mk, std::size_t k) {
    return mk.tile_rows != 0 ? mk.row_bytes(k) : spread(moe::kAlignment *
        ((mk.row_bytes(k) + moe::kAlignment - 1) / moe::kAlignment));
}

bool is_complete(const moe_ep_expert &e) {
    return e.gmm1 != nullptr && e.gmm1_scale != nullptr && e.gmm2 != nullptr &&
           e.gmm2_scale != nullptr;
}

bool is_width(int32_t n) { return n >= 2 && n % 2 == 0 && n / 2 <= kMaxReduction; }

bool is_valid(const moe_ep_setup &s) {
    if (s.h < 1 || s.h > kMaxReduction || !is_width(s.n) || s.local_experts < 1 || s.threads < 1 ||
        s.experts == nullptr || s.n_shared < 0 || (s.n_shared > 0 && !is_width(s.n_shared)) ||
        (s.n_shared > 0 && (s.shared == nullptr || !is_complete(*s.shared)))) {
        return false;
    }
    return std::all_of(s.experts, s.experts + s.local_experts, is_complete);
}

} // namespace

namespace moe {
namespace ep {

Scratch::Scratch(const moe_microkernels &mk, const Experts &experts, std::size_t rows)
    : x_row_bytes(row_distance(mk, experts.routed.h)),
      q2_row_bytes(row_distance(mk, std::max(experts.routed.m, experts.shared.m))),
      z_stride(std::max(experts.routed.m_padded, experts.shared.m_padded)),
      x(rows * x_row_bytes), q2(rows * q2_row_bytes), acc(mk.mr * 2 * mk.nr), z(rows * z_stride),
      values(std::max(experts.routed.h, z_stride)), bytes_row(std::max(experts.routed.h, z_stride)),
      x_scale(rows), s2(rows), operands(rows), out(rows),
      tiles(mk, std::max(experts.routed.h, z_stride)) {}

void Scratch::zero() {
    x.zero();
    q2.zero();
    acc.zero();
    z.zero();
    values.zero();
    bytes_row.zero();
    tiles.zero();
}

int64_t Scratch::bytes() const {
    return x.bytes() + q2.bytes() + acc.bytes() + z.bytes() + values.bytes() + bytes_row.bytes() +
           tiles.bytes();
}

void CallState::grow(std::size_t experts, std::size_t local, std::size_t ranks) {
    counts.resize(experts);
    received.resize(local * ranks);
    groups.resize(local);
    if (remaining_size < experts) {
        remaining.reset(new std::atomic<int32_t>[experts]);
        remaining_size = experts;
    }
}

} // namespace ep
} // namespace moe

moe_ep_engine::moe_ep_engine(const moe_ep_setup &setup)
    : mk(moe::packed::path_microkernels()), pool(setup.threads, setup.pin != 0),
      experts(mk, setup, pool), block_rows(rows_in_cache(mk, experts)) {
    for (int32_t thread = 0; thread < pool.threads(); ++thread) {
        scratch.emplace_back(mk, experts, block_rows);
    }
    // Its owner touches it first.
    pool.run([&](int32_t thread, int32_t) { scratch[static_cast<std::size_t>(thread)].zero(); });
}

extern "C" int32_t moe_ep_abi_version(void) { return MOE_EP_ABI_VERSION; }

extern "C" int32_t moe_ep_create(const moe_ep_setup *setup, moe_ep_engine **engine) {
    if (setup == nullptr || engine == nullptr || !is_valid(*setup)) {
        return MOE_BAD_ARGUMENT;
    }
    try {
        *engine = new moe_ep_engine(*setup);
    } catch (const std::bad_alloc &) {
        return MOE_NO_MEMORY;
    } catch (...) {
        return MOE_INTERNAL;
    }
    return MOE_OK;
}

extern "C" int32_t moe_ep_info(const moe_ep_engine *engine, moe_ep_engine_info *info) {
    if (engine == nullptr || info == nullptr) {
        return MOE_BAD_ARGUMENT;
    }
    moe_info path{};
    std::snprintf(path.isa, sizeof path.isa, "%s", MOE_ISA_NAME);
    moe::packed::describe_fallback(&path);
    *info = moe_ep_engine_info{};
    std::memcpy(info->isa, path.isa, sizeof info->isa);
    std::memcpy(info->note, path.note, sizeof info->note);
    std::snprintf(info->microkernel, sizeof info->microkernel, "%s", engine->mk.gemm_name);
    info->threads = engine->pool.threads();
    info->mr = static_cast<int32_t>(engine->mk.mr);
    info->nr = static_cast<int32_t>(engine->mk.nr);
    info->block_rows = static_cast<int32_t>(engine->block_rows);
    info->weight_bytes = engine->experts.bytes();
    for (const moe::ep::Scratch &scratch : engine->scratch) {
        info->scratch_bytes += scratch.bytes();
    }
    return MOE_OK;
}

extern "C" void moe_ep_destroy(moe_ep_engine *engine) { delete engine; }
