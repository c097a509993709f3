// A C model of the AMX-INT8 tile intrinsics, for CPUs without tiles: the kernels' sources run unchanged
// with -DMOE_AMX_SHIM='"amx_shim.h"'. What an instruction would refuse (#GP, #UD) ends the process with
// its reason, and so does what no kernel here may do: a tile that is used before it was set.
//
// Source: Intel SDM volume 1, chapter 18, and volume 2 (LDTILECFG, TILELOADD, TILESTORED, TDPBUSD).
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace amx_shim {

constexpr int kTiles = 8, kMostRows = 16, kMostBytes = 64;

struct Config {
    uint8_t palette, start_row;
    uint8_t reserved[14];
    uint16_t column_bytes[16];
    uint8_t rows[16];
};
static_assert(sizeof(Config) == 64, "as ldtilecfg reads it");

struct Tiles {
    Config config;
    bool loaded[kTiles]; // since they were set
    uint8_t bytes[kTiles][kMostRows][kMostBytes];
};

// One for all files of a library, and of each thread.
inline thread_local Tiles tiles{};

inline void require(bool holds, const char *rule) {
    if (!holds) {
        std::fprintf(stderr, "amx_shim: %s\n", rule);
        std::abort();
    }
}

inline void require_tile(int t) {
    require(tiles.config.palette == 1, "a tile is used without configuration");
    require(t >= 0 && t < kTiles && tiles.config.rows[t] != 0, "the tile is not configured");
}

inline void load_config(const void *from) {
    std::memset(&tiles, 0, sizeof tiles);
    Config config;
    std::memcpy(&config, from, sizeof config);
    require(config.palette == 1, "palette 1 is the only one");
    require(config.start_row == 0, "start_row is for the system");
    for (uint8_t byte : config.reserved) {
        require(byte == 0, "reserved bytes are zero");
    }
    for (int t = 0; t < 16; ++t) {
        require(config.rows[t] <= kMostRows, "a tile has 16 rows at most");
        require(config.column_bytes[t] <= kMostBytes, "a row has 64 bytes at most");
        require((config.rows[t] == 0) == (config.column_bytes[t] == 0), "rows without columns");
        require(t < kTiles || config.rows[t] == 0, "there are eight tiles");
    }
    tiles.config = config;
}

inline void release() { std::memset(&tiles, 0, sizeof tiles); }

inline void zero(int t) {
    require_tile(t);
    std::memset(tiles.bytes[t], 0, sizeof tiles.bytes[t]);
    tiles.loaded[t] = true;
}

inline void load(int t, const void *base, std::ptrdiff_t stride) {
    zero(t);
    for (int r = 0; r < tiles.config.rows[t]; ++r) {
        std::memcpy(tiles.bytes[t][r], static_cast<const char *>(base) + r * stride,
                    tiles.config.column_bytes[t]);
    }
}

inline void store(int t, void *base, std::ptrdiff_t stride) {
    require_tile(t);
    require(tiles.loaded[t], "a tile is stored that nothing was put into");
    for (int r = 0; r < tiles.config.rows[t]; ++r) {
        std::memcpy(static_cast<char *>(base) + r * stride, tiles.bytes[t][r],
                    tiles.config.column_bytes[t]);
    }
}

inline int value_of(uint8_t byte, bool is_signed) {
    return is_signed ? static_cast<int8_t>(byte) : byte;
}

// c[m][n] += sum over k and i of a[m][4 k + i] * b[k][4 n + i], modulo 2^32.
inline void multiply(int c, int a, int b, bool a_signed, bool b_signed) {
    require_tile(a);
    require_tile(b);
    require_tile(c);
    require(a != b && a != c && b != c, "the three tiles of a product differ");
    require(tiles.loaded[a] && tiles.loaded[b] && tiles.loaded[c], "a tile was not loaded");
    const Config &config = tiles.config;
    require(config.rows[c] == config.rows[a] && config.column_bytes[c] == config.column_bytes[b] &&
                config.column_bytes[a] == 4 * config.rows[b] && config.column_bytes[b] % 4 == 0,
            "the shapes of a product do not fit");
    for (int m = 0; m < config.rows[c]; ++m) {
        for (int n = 0; n < config.column_bytes[c] / 4; ++n) {
            uint32_t sum;
            std::memcpy(&sum, &tiles.bytes[c][m][4 * n], sizeof sum);
            for (int k = 0; k < config.rows[b]; ++k) {
                for (int i = 0; i < 4; ++i) {
                    sum += static_cast<uint32_t>(value_of(tiles.bytes[a][m][4 * k + i], a_signed) *
                                                 value_of(tiles.bytes[b][k][4 * n + i], b_signed));
                }
            }
            std::memcpy(&tiles.bytes[c][m][4 * n], &sum, sizeof sum);
        }
    }
}

} // namespace amx_shim

// Permission: refused with the error number in AMX_SHIM_REFUSES, else given.
inline int amx_shim_request_tiles() {
    const char *refusal = std::getenv("AMX_SHIM_REFUSES");
    return refusal == nullptr ? 0 : std::atoi(refusal);
}

#define _tile_loadconfig(from) amx_shim::load_config(from)
#define _tile_release() amx_shim::release()
#define _tile_zero(t) amx_shim::zero(t)
#define _tile_loadd(t, base, stride) amx_shim::load(t, base, static_cast<std::ptrdiff_t>(stride))
#define _tile_stored(t, base, stride) amx_shim::store(t, base, static_cast<std::ptrdiff_t>(stride))
#define _tile_dpbusd(c, a, b) amx_shim::multiply(c, a, b, false, true)
#define _tile_dpbssd(c, a, b) amx_shim::multiply(c, a, b, true, true)
#define _tile_dpbsud(c, a, b) amx_shim::multiply(c, a, b, true, false)
#define _tile_dpbuud(c, a, b) amx_shim::multiply(c, a, b, false, false)
