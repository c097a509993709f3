// Planted: instruction_bound. Game of Life, 64 cells a word with bitwise adders on a 4 KiB board:
// word after word of independent ALU work, everything in L1, loops predictable.
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { H = 128, W = 4, GENERATIONS = 900000 };
static uint64_t board[2][H][W];

__attribute__((noinline)) static void step(uint64_t (*a)[W], uint64_t (*b)[W])
{
    for (int y = 0; y < H; y++) {
        const uint64_t *u = a[(y + H - 1) & (H - 1)], *m = a[y], *d = a[(y + 1) & (H - 1)];
        for (int x = 0; x < W; x++) {
            int l = (x + W - 1) & (W - 1), r = (x + 1) & (W - 1);
            uint64_t n1 = u[x] << 1 | u[l] >> 63, n2 = u[x], n3 = u[x] >> 1 | u[r] << 63;
            uint64_t n4 = m[x] << 1 | m[l] >> 63, n5 = m[x] >> 1 | m[r] << 63;
            uint64_t n6 = d[x] << 1 | d[l] >> 63, n7 = d[x], n8 = d[x] >> 1 | d[r] << 63;
            uint64_t s1 = n1 ^ n2 ^ n3, c1 = (n1 & n2) | (n3 & (n1 ^ n2));
            uint64_t s2 = n6 ^ n7 ^ n8, c2 = (n6 & n7) | (n8 & (n6 ^ n7));
            uint64_t s3 = n4 ^ n5, c3 = n4 & n5;
            uint64_t one = s1 ^ s2 ^ s3, c4 = (s1 & s2) | (s3 & (s1 ^ s2));
            uint64_t t = c1 ^ c2, t2 = c3 ^ c4;
            uint64_t two = t ^ t2;
            uint64_t four = (c1 & c2) | (c3 & c4) | (t & t2);
            b[y][x] = two & ~four & (one | m[x]);
        }
    }
}

int main(void)
{
    uint64_t s = 88172645463325252ull;
    for (int y = 0; y < H; y++)
        for (int x = 0; x < W; x++) {
            s ^= s << 13; s ^= s >> 7; s ^= s << 17;
            board[0][y][x] = s;
        }
    for (int g = 0; g < GENERATIONS; g++)
        step(board[g & 1], board[~g & 1]);
    uint64_t sum = 0;
    for (int y = 0; y < H; y++)
        for (int x = 0; x < W; x++)
            sum = sum * 1099511628211ull + board[0][y][x];
    printf("checksum %llx\n", (unsigned long long)sum);
    return 0;
}
