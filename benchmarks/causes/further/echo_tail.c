// Planted: denormals. Equalizes the dead tail of a reverb: x[i] / gain on doubles decayed to
// 1e-310. Independent scalar divides on subnormal operands and results. Checked on Zen 3: 2.1 times
// faster with FTZ/DAZ set or with normal values.
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { N = 1024, ROUNDS = 1400000 };
static double tail[N], out[N];

__attribute__((noinline)) static void equalize(const double *x, double *y, int n, double gain)
{
    for (int i = 0; i < n; i++)
        y[i] = x[i] / gain;
}

int main(void)
{
    for (int i = 0; i < N; i++) tail[i] = 1e-310 * (1.0 + i * 0.001);
    double gain = 1.3;
    uint64_t sum = 0;
    for (int r = 0; r < ROUNDS; r++) {
        equalize(tail, out, N, gain);
        gain += 1e-9;
        uint64_t bits;
        memcpy(&bits, &out[r & (N - 1)], 8);
        sum = sum * 31 + bits;
    }
    printf("checksum %llx\n", (unsigned long long)sum);
    return 0;
}
