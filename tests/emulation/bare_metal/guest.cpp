// The AMX path's kernels on an emulated CPU with tiles and no system: products against plain loops.
//
// Bochs multiplies the signed operands of tdpbssd, tdpbsud and tdpbusd as if they were unsigned. Weights of
// 0..127 and int16 of 0..32767 are exact either way; for the whole range of weights the products are compared
// with both meanings, and the one that fits is reported. One and two rows take vpdpbusd on the same panels.
#include "packed/amx_int8/candidates__amx_int8.h"
#include "packed/amx_int8/rows__amx_int8.h"

extern "C" void *memset(void *to, int value, size_t size) {
    unsigned char *p = static_cast<unsigned char *>(to);
    while (size-- > 0) {
        *p++ = static_cast<unsigned char>(value);
    }
    return to;
}

namespace {

constexpr size_t kMostK = 320, kMostRows = 32, kMostStride = 64 * 7, kMostPanels = 3;

alignas(64) uint8_t rows[kMostRows * kMostStride];
alignas(64) uint8_t panels[kMostPanels * (MOE_VNNI_CORRECTION_BYTES + kMostK * MOE_VNNI_NR)];
int8_t weights[kMostPanels * MOE_VNNI_NR][kMostK];
int32_t acc[kMostRows + 1][kMostPanels * MOE_VNNI_NR + 5];

// Of the candidate router: int16 that are not negative.
constexpr size_t kTokens = MOE_AMX_TILE_ROWS, kMostD = 192;
uint16_t values[kTokens][kMostD];
alignas(64) int16_t token_rows[kTokens * (kMostD + 32)];
alignas(64) int16_t router_panel[kMostD * MOE_VNNI_NR];
int16_t router[MOE_VNNI_NR][kMostD];

uint32_t state = 12345;

uint32_t random() {
    state = state * 1664525u + 1013904223u;
    return state >> 8;
}

// The first serial port. Source: National Semiconductor PC16550D data sheet, section 8.
constexpr uint16_t kData = 0x3f8, kLineControl = 0x3fb, kLineStatus = 0x3fd;

void out(uint16_t port, uint8_t value) {
    __asm__ volatile("outb %0, %1" : : "a"(value), "Nd"(port));
}

uint8_t in(uint16_t port) {
    uint8_t value;
    __asm__ volatile("inb %1, %0" : "=a"(value) : "Nd"(port));
    return value;
}

void open_port() {
    out(kLineControl, 0x80); // the next two are the divisor: 115200 baud
    out(kData, 1);
    out(kData + 1, 0);
    out(kLineControl, 0x03); // eight bits
}

void wait_until(uint8_t status) {
    while ((in(kLineStatus) & status) != status) {
    }
}

void put(char c) {
    wait_until(0x20); // there is room
    out(kData, static_cast<uint8_t>(c));
}

void say(const char *text) {
    while (*text != 0) {
        put(*text++);
    }
}

void say(size_t number) {
    if (number >= 10) {
        say(number / 10);
    }
    put(static_cast<char>('0' + number % 10));
}

moe_gemm_panels_fn kernel_of(size_t m) {
    switch (m) {
    case 1: return moe_qu8s8_gemm_1x32c4__avx512_vnni;
    case 2: return moe_qu8s8_gemm_2x32c4__avx512_vnni;
#define MOE_CASE(mr) case mr: return moe_qu8s8_gemm_##mr##x32c64__amx_int8;
    MOE_AMX_EACH_SMALL_TILE(MOE_CASE)
    default: return moe_qu8s8_gemm_32x32c64__amx_int8;
    }
}

enum Meaning { kSigned, kUnsigned };

// Products that differ from the plain loops'; what lies around them counts too.
size_t wrong(size_t m, size_t k, size_t count, size_t stride, Meaning meaning) {
    size_t found = 0;
    for (size_t r = 0; r <= m && r <= kMostRows; ++r) {
        for (size_t c = 0; c < kMostPanels * MOE_VNNI_NR + 5; ++c) {
            uint32_t expected = 77;
            if (r < m && c < count * MOE_VNNI_NR) {
                expected = 0;
                for (size_t i = 0; i < k; ++i) {
                    const int32_t w = weights[c][i];
                    const int32_t factor = meaning == kSigned ? w : (w & 255);
                    expected += static_cast<uint32_t>(rows[r * stride + i] * factor - 128 * w);
                }
            }
            found += static_cast<uint32_t>(acc[r][c]) != expected;
        }
    }
    return found;
}

size_t stride_of(size_t k) { return 64 * (moe_vnni_round_up(k, 64) / 64 | 1); }

void multiply(size_t m, size_t k, size_t count, bool whole_range) {
    const size_t stride = stride_of(k);
    memset(rows, 128, sizeof rows);
    memset(panels, 0xa5, sizeof panels);
    const void *addresses[kMostRows];
    for (size_t r = 0; r < m; ++r) {
        addresses[r] = rows + r * stride;
        for (size_t i = 0; i < k; ++i) {
            rows[r * stride + i] = static_cast<uint8_t>(r == 1 ? 255 : 1 + random() % 255);
        }
    }
    for (auto &row : acc) {
        for (int32_t &value : row) {
            value = 77;
        }
    }
    const size_t panel_bytes =
        MOE_VNNI_CORRECTION_BYTES + moe_vnni_round_up(k, MOE_AMX_KR) * MOE_VNNI_NR;
    for (size_t p = 0; p < count; ++p) {
        const int8_t *channels[MOE_VNNI_NR];
        for (size_t c = 0; c < MOE_VNNI_NR; ++c) {
            int8_t *channel = weights[p * MOE_VNNI_NR + c];
            channels[c] = channel;
            for (size_t i = 0; i < k; ++i) {
                const uint32_t any = random();
                channel[i] = static_cast<int8_t>(whole_range ? any : any & 127);
            }
        }
        moe_qs8_pack_32c64__amx_int8(k, channels, panels + p * panel_bytes);
    }
    const bool tiles = m >= MOE_AMX_LEAST_ROWS;
    if (tiles) {
        moe_configure_tiles__amx_int8(m);
    }
    kernel_of(m)(k, count, panel_bytes, addresses, panels, acc[0], kMostPanels * MOE_VNNI_NR + 5);
    if (tiles) {
        moe_release_tiles__amx_int8();
    }
}

// Of a product of m tokens with 32 experts over d values, set and then added once more.
size_t wrong_by_candidates(size_t m, size_t d) {
    const int16_t *rows16[kTokens], *channels[MOE_VNNI_NR];
    for (size_t t = 0; t < kTokens; ++t) {
        int16_t *row = token_rows + t * moe_amx_row16_values(d);
        uint8_t *bytes = reinterpret_cast<uint8_t *>(row);
        rows16[t] = row;
        memset(row, 0, 2 * moe_amx_row16_values(d));
        for (size_t i = 0; i < d; ++i) {
            const uint32_t value = random() & 32767;
            values[t][i] = static_cast<uint16_t>(value);
            bytes[i / 64 * 128 + i % 64] = static_cast<uint8_t>(value >> 8);
            bytes[i / 64 * 128 + i % 64 + 64] = static_cast<uint8_t>(value);
        }
    }
    for (size_t e = 0; e < MOE_VNNI_NR; ++e) {
        channels[e] = router[e];
        for (size_t i = 0; i < d; ++i) {
            router[e][i] = static_cast<int16_t>(random() & 32767);
        }
    }
    moe_qs16_pack_32c64__amx_int8(d, channels, router_panel);
    memset(acc, 0x4d, sizeof acc);
    moe_configure_tiles__amx_int8(2 * MOE_AMX_TILE_ROWS);
    for (int first = 1; first >= 0; --first) {
        moe_qs16_gemm_16x32c64__amx_int8(m, (d + 1) / 2, rows16, router_panel, first, acc[0],
                                         sizeof acc[0] / sizeof(int32_t));
    }
    moe_release_tiles__amx_int8();
    size_t found = 0;
    for (size_t t = 0; t <= m; ++t) {
        for (size_t e = 0; e < MOE_VNNI_NR + 5; ++e) {
            uint32_t expected = 0x4d4d4d4d;
            if (t < m && e < MOE_VNNI_NR) {
                expected = 0;
                for (size_t i = 0; i < d; ++i) {
                    expected += 2 * uint32_t{values[t][i]} *
                                static_cast<uint32_t>(router[e][i]);
                }
            }
            found += static_cast<uint32_t>(acc[t][e]) != expected;
        }
    }
    return found;
}

} // namespace

extern "C" void guest_main() {
    open_port();
    const size_t sizes[] = {1, 63, 64, 65, 128, 130, 257, 320};
    size_t products = 0, failures = 0, as_signed = 0, as_unsigned = 0;
    for (size_t k : sizes) {
        const size_t stride = stride_of(k);
        for (size_t m = 1; m <= kMostRows; ++m) {
            for (size_t count = 1; count <= kMostPanels; ++count) {
                multiply(m, k, count, false);
                ++products;
                const size_t differing = wrong(m, k, count, stride, kSigned);
                if (differing != 0) {
                    ++failures;
                    say("wrong: rows "), say(m), say(" k "), say(k), say(" panels "), say(count);
                    say(" values "), say(differing), say("\n");
                }
                multiply(m, k, count, true);
                const bool fits = wrong(m, k, count, stride, kSigned) == 0;
                const bool fits_unsigned =
                    m >= MOE_AMX_LEAST_ROWS && wrong(m, k, count, stride, kUnsigned) == 0;
                as_signed += fits;
                as_unsigned += !fits && fits_unsigned;
                failures += !fits && !fits_unsigned;
            }
        }
    }
    size_t by_candidates = 0;
    const size_t widths[] = {1, 63, 64, 65, 128, 191};
    for (size_t d : widths) {
        for (size_t m = 1; m <= kTokens; ++m, ++by_candidates) {
            if (wrong_by_candidates(m, d) != 0) {
                ++failures;
                say("wrong: tokens "), say(m), say(" d "), say(d), say("\n");
            }
        }
    }
    say("products of int16 0..32767: "), say(by_candidates), say("\n");
    say("products of weights 0..127: "), say(products), say("\n");
    say("whole range, as the instruction is defined: "), say(as_signed), say("\n");
    say("whole range, weights taken as unsigned: "), say(as_unsigned), say("\n");
    say(failures == 0 ? "RESULT OK\n" : "RESULT WRONG\n");
    wait_until(0x60); // all is sent
}
