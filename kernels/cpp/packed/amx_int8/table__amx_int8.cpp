// The AMX-INT8 path's row of the table of microkernels: tiles for three rows and more, the rest is the
// AVX-512-VNNI path's. Where the system refuses tiles, all of it is.
#include <cstdio>
#include <cstring>

#include "../../tile_permission.h"
#include "../avx512_vnni/table__avx512_vnni.h"
#include "../path.h"
#include "candidates__amx_int8.h"
#include "rows__amx_int8.h"
#include "tiles__amx_int8.h"

namespace moe {
namespace packed {
namespace {

size_t row_bytes(size_t k) { return 64 * (moe_vnni_round_up(k, 64) / 64 | 1); }

size_t panel_bytes(size_t k) {
    return MOE_VNNI_CORRECTION_BYTES + moe_vnni_round_up(k, MOE_AMX_KR) * MOE_VNNI_NR;
}

constexpr moe_microkernels make_table() {
    moe_microkernels table = kVnniMicrokernels;
    table.gemm_name = "qu8s8_gemm_32x32c64__amx_int8";
    table.mr = 2 * MOE_AMX_TILE_ROWS;
    table.kr = MOE_AMX_KR;
    table.row_bytes = row_bytes;
    table.panel_bytes = panel_bytes;
    table.pack_panel = moe_qs8_pack_32c64__amx_int8;
    table.tile_rows = MOE_AMX_LEAST_ROWS;
    table.configure_tiles = moe_configure_tiles__amx_int8;
    table.release_tiles = moe_release_tiles__amx_int8;
    table.candidates = &kAmxCandidateKernels;
    table.bytes_at_once = SIZE_MAX; // all rows of a block are in one call
#define MOE_TABLE_GEMM(mr) table.gemm_panels[mr - 1] = moe_qu8s8_gemm_##mr##x32c64__amx_int8;
    MOE_AMX_EACH_SMALL_TILE(MOE_TABLE_GEMM)
#undef MOE_TABLE_GEMM
    for (int mr = MOE_AMX_TILE_ROWS + 1; mr <= 2 * MOE_AMX_TILE_ROWS; ++mr) {
        table.gemm_panels[mr - 1] = moe_qu8s8_gemm_32x32c64__amx_int8;
    }
    return table;
}

constexpr moe_microkernels kTable = make_table();

// Asks once in a process.
int refusal() {
#ifdef MOE_AMX_SHIM
    static const int error = amx_shim_request_tiles();
#else
    static const int error = request_tiles();
#endif
    return error;
}

} // namespace

const moe_microkernels &path_microkernels() {
    return refusal() == 0 ? kTable : kVnniMicrokernels;
}

void describe_fallback(moe_info *info) {
    if (refusal() == 0) {
        return;
    }
    std::snprintf(info->isa, sizeof info->isa, "avx512_vnni");
    std::snprintf(info->note, sizeof info->note,
                  "tiles were refused (" MOE_TILE_REQUEST ": %s): microkernels of avx512_vnni run",
                  std::strerror(refusal()));
}

} // namespace packed
} // namespace moe
