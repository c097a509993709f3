// Planted: denormals. Normalises faded particle weights: float vectors of subnormal values divided
// by subnormal sums (w / total), again and again; checked on Zen 3: 2.9 times faster with FTZ/DAZ
// set or with normal values.
// Build: -O3 -mavx2
#include <stdio.h>

enum { N = 2048, ROUNDS = 2800000 };
static float weight[N], total[N], share[N];

__attribute__((noinline)) static void
normalise(const float *restrict w, const float *restrict t, float *restrict s)
{
    for (int i = 0; i < N; i++)
        s[i] = w[i] / t[i];
}

int main(void)
{
    for (int i = 0; i < N; i++) {
        weight[i] = 3e-39f + 1e-41f * (float)(i % 97);
        total[i] = 9e-39f + 1e-41f * (float)(i % 31);
    }
    double sum = 0;
    for (int r = 0; r < ROUNDS; r++) {
        normalise(weight, total, share);
        sum += share[r & (N - 1)];
        weight[r & (N - 1)] = 3e-39f + 1e-42f * (float)(r & 63);
    }
    printf("checksum %.6f\n", sum);
    return 0;
}
