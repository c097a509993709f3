/* Planted: l2_bound. y += a x on two vectors that together fill half of a 1 MiB second level. */
/* Build: -O3 -march=native */
#include <stdio.h>

#define N 65536

static float x[N], y[N];

int main(void)
{
    for (int i = 0; i < N; i++)
        x[i] = (float)i;
    for (int round = 0; round < 600000; round++) {
        float a = 1e-6f * (float)round;
        for (int i = 0; i < N; i++)
            y[i] += a * x[i];
    }
    printf("%g\n", y[N - 1]);
    return 0;
}
