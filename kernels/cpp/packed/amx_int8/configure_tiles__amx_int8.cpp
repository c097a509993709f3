// Sets a thread's tiles for products of mr rows, and gives them back.
//
// Up to 16 rows: both pairs of accumulators have mr rows, for even and odd blocks of k. More: the first
// pair has 16, the second the rest. A product of fewer rows takes as many cycles fewer.
#include "rows__amx_int8.h"
#include "tiles__amx_int8.h"

namespace {

// Palette 1. Source: Intel SDM volume 1, chapter 18.
struct alignas(64) TileConfig {
    uint8_t palette;
    uint8_t start_row;
    uint8_t reserved[14];
    uint16_t column_bytes[16];
    uint8_t rows[16];
};
static_assert(sizeof(TileConfig) == 64, "the instruction reads 64 bytes");

} // namespace

extern "C" void moe_configure_tiles__amx_int8(size_t mr) {
    MOE_REQUIRE(mr >= MOE_AMX_LEAST_ROWS && mr <= 2 * MOE_AMX_TILE_ROWS);
    const size_t first = mr < MOE_AMX_TILE_ROWS ? mr : MOE_AMX_TILE_ROWS;
    const size_t second = mr <= MOE_AMX_TILE_ROWS ? mr : mr - MOE_AMX_TILE_ROWS;
    TileConfig config{};
    config.palette = 1;
    for (int tile = 0; tile < 8; ++tile) {
        config.column_bytes[tile] = 64;
    }
    config.rows[MOE_ACC_00] = config.rows[MOE_ACC_01] = (uint8_t)first;
    config.rows[MOE_ACC_10] = config.rows[MOE_ACC_11] = (uint8_t)second;
    config.rows[MOE_ROWS_0] = (uint8_t)first;
    config.rows[MOE_ROWS_1] = (uint8_t)second;
    config.rows[MOE_WEIGHTS_0] = config.rows[MOE_WEIGHTS_1] = MOE_AMX_KR / 4;
    MOE_STORES_ARE_READ();
    _tile_loadconfig(&config);
}

extern "C" void moe_release_tiles__amx_int8(void) { _tile_release(); }
