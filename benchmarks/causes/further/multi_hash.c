// Planted: port_bound. Polynomial hash of eight columns at once: eight independent 64-bit multiply-
// add chains, more than the multiplier's latency needs, so the single multiply port (one imul a
// cycle) is the limit.
// Build: -O2 -fno-tree-vectorize
#include <stdint.h>
#include <stdio.h>

enum { ROWS = 128, ROUNDS = 8000000 };
static uint64_t col[ROWS][8];
#define K 0x9E3779B97F4A7C15ull

int main(void)
{
    uint64_t s = 42;
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < 8; j++) {
            s ^= s << 13; s ^= s >> 7; s ^= s << 17;
            col[i][j] = s;
        }
    uint64_t a = 1, b = 2, c = 3, d = 4, e = 5, f = 6, g = 7, h = 8;
    for (int r = 0; r < ROUNDS; r++)
        for (int i = 0; i < ROWS; i++) {
            const uint64_t *v = col[i];
            a = a * K + v[0];
            b = b * K + v[1];
            c = c * K + v[2];
            d = d * K + v[3];
            e = e * K + v[4];
            f = f * K + v[5];
            g = g * K + v[6];
            h = h * K + v[7];
        }
    printf("checksum %llx\n", (unsigned long long)(a ^ b ^ c ^ d ^ e ^ f ^ g ^ h));
    return 0;
}
