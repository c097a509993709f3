/* Planted: denormals. Heat flow in a plate whose temperatures are below 1e-308. */
/* Build: -O3 */
#include <stdio.h>

#define SIDE 64

static double plate[SIDE][SIDE], next[SIDE][SIDE];

int main(void)
{
    for (int i = 0; i < SIDE; i++)
        plate[0][i] = plate[i][0] = 3e-310;
    for (int t = 0; t < 400000; t++) {
        for (int y = 1; y < SIDE - 1; y++)
            for (int x = 1; x < SIDE - 1; x++)
                next[y][x] = 0.25 * (plate[y - 1][x] + plate[y + 1][x] + plate[y][x - 1] + plate[y][x + 1]);
        for (int y = 1; y < SIDE - 1; y++)
            for (int x = 1; x < SIDE - 1; x++)
                plate[y][x] = next[y][x];
    }
    printf("%g\n", plate[SIDE / 2][SIDE / 2]);
    return 0;
}
