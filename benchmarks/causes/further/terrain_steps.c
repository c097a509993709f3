// Planted: serial_bound. Each round smooths a height map with the OpenMP team (some ms), then the
// master alone routes the water cell by cell (hundreds of ms): Amdahl, the team sleeps most of the
// time.
#include <omp.h>
#include <stdint.h>
#include <stdio.h>

enum { W = 512, H = 512 };
static float map[2][H][W];
static uint32_t water[H][W];

int main(void)
{
    uint32_t s = 3;
    for (int y = 0; y < H; y++)
        for (int x = 0; x < W; x++) {
            s = s * 1664525u + 1013904223u;
            map[0][y][x] = (float)(s >> 8) * 1e-6f;
        }
    uint64_t sum = 0;
    for (int round = 0; round < 8; round++) {
        for (int k = 0; k < 10; k++) {
            float (*a)[W] = map[k & 1], (*b)[W] = map[~k & 1];
#pragma omp parallel for schedule(static)
            for (int y = 1; y < H - 1; y++)
                for (int x = 1; x < W - 1; x++)
                    b[y][x] = 0.2f * (a[y][x] + a[y - 1][x] + a[y + 1][x] + a[y][x - 1] +
                                      a[y][x + 1]);
        }
        for (int pass = 0; pass < 700; pass++)
            for (int y = 1; y < H; y++)
                for (int x = 1; x < W; x++) {
                    uint32_t in = water[y - 1][x] / 2 + water[y][x - 1] / 2;
                    water[y][x] = in / 2 + (map[0][y][x] > map[0][y - 1][x] ? 3u : 1u);
                }
        sum = sum * 31 + water[H - 1][W - 1] + water[H / 2][W / 3];
    }
    printf("checksum %llu\n", (unsigned long long)sum);
    return 0;
}
