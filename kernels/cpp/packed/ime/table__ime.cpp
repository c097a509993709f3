// The row of the table of microkernels of SpacemiT's integer matrix extension, with its products or
// those of RISC-V vectors for gate and up, and for down: MOE_IME_GATE_UP and MOE_IME_DOWN, each ime
// (the default) or rvv, choose when a plan is made.
#include <cstdlib>
#include <cstring>

#include "../path.h"
#include "../rvv/table_kernels__rvv.h"
#include "rows__ime.h"

namespace moe {
namespace packed {
namespace {

size_t ime_panel_bytes(size_t k) {
    return moe_ime_tiles(k) * MOE_IME_TILE_BYTES * MOE_IME_BLOCKS;
}

constexpr moe_microkernels by_tiles(const moe_microkernels *down) {
    moe_microkernels table = rvv_f32_kernels();
    table.mr = MOE_IME_MR;
    table.nr = MOE_RVV_NR;
    table.gemm_name = down == nullptr ? "qs8_gemm_8x16c8__ime" : "qs8_gemm_8x16c8__ime+rvv";
    table.gemm_one_name = down == nullptr ? "qs8_gemm_1x16c8__ime" : "qs8_gemm_1x16c8__ime+rvv";
    table.kr = MOE_IME_KR;
    table.panel_bytes = ime_panel_bytes;
    table.pack_panel = moe_qs8_pack_16c8__ime;
    table.gemm[0] = moe_qs8_gemm_1x16c8__ime;
    table.gemm[1] = moe_qs8_gemm_2x16c8__ime;
    table.gemm[2] = moe_qs8_gemm_3x16c8__ime;
    table.gemm[3] = moe_qs8_gemm_4x16c8__ime;
    table.gemm[4] = moe_qs8_gemm_5x16c8__ime;
    table.gemm[5] = moe_qs8_gemm_6x16c8__ime;
    table.gemm[6] = moe_qs8_gemm_7x16c8__ime;
    table.gemm[7] = moe_qs8_gemm_8x16c8__ime;
    table.down = down;
    return table;
}

constexpr moe_microkernels by_vectors(const moe_microkernels *down) {
    moe_microkernels table = rvv_kernels();
    if (down != nullptr) {
        table.gemm_name = "qs8_gemm_8x16__rvv+ime";
        table.gemm_one_name = "qs8_gemm_1x16__rvv+ime";
    }
    table.down = down;
    return table;
}

constexpr moe_microkernels kTiles = by_tiles(nullptr);
constexpr moe_microkernels kVectors = by_vectors(nullptr);
constexpr moe_microkernels kTilesThenVectors = by_tiles(&kVectors);
constexpr moe_microkernels kVectorsThenTiles = by_vectors(&kTiles);

bool wants_vectors(const char *variable) {
    const char *wish = std::getenv(variable);
    return wish != nullptr && std::strcmp(wish, "rvv") == 0;
}

} // namespace

const moe_microkernels &path_microkernels() {
    const bool down_by_vectors = wants_vectors("MOE_IME_DOWN");
    if (wants_vectors("MOE_IME_GATE_UP")) {
        return down_by_vectors ? kVectors : kVectorsThenTiles;
    }
    return down_by_vectors ? kTilesThenVectors : kTiles;
}

void describe_fallback(moe_info *) {}

} // namespace packed
} // namespace moe
