// Planted: instruction_bound. Base64-encodes a 9 KiB buffer over and over; independent
// shifts/ors/table look-ups in L1, no chain, no misses: just many instructions.
#include <stdint.h>
#include <stdio.h>
#include <stddef.h>

enum { RAW = 9216, ROUNDS = 450000 };
static const char alphabet[65] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
static uint8_t raw[RAW];
static char text[RAW / 3 * 4 + 4];

__attribute__((noinline)) static size_t encode(const uint8_t *in, size_t n, char *out)
{
    char *o = out;
    for (size_t i = 0; i + 2 < n; i += 3) {
        uint32_t v = (uint32_t)in[i] << 16 | (uint32_t)in[i + 1] << 8 | in[i + 2];
        o[0] = alphabet[v >> 18];
        o[1] = alphabet[(v >> 12) & 63];
        o[2] = alphabet[(v >> 6) & 63];
        o[3] = alphabet[v & 63];
        o += 4;
    }
    return (size_t)(o - out);
}

int main(void)
{
    uint32_t s = 12345;
    for (int i = 0; i < RAW; i++) {
        s = s * 1664525u + 1013904223u;
        raw[i] = (uint8_t)(s >> 24);
    }
    uint64_t sum = 0;
    for (int r = 0; r < ROUNDS; r++) {
        raw[r % RAW] ^= (uint8_t)r;
        size_t n = encode(raw, RAW, text);
        sum = sum * 31 + (uint8_t)text[r % (int)n];
    }
    printf("checksum %llu\n", (unsigned long long)sum);
    return 0;
}
