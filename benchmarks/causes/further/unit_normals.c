// Planted: port_bound. Scales 256 normals (structure of arrays, 12 KiB in L1) to unit length with a
// scalar sqrt and a divide each; normals are independent, so the one FP divide/sqrt unit is the
// limit.
// Build: -O2 -fno-math-errno -fno-tree-vectorize
#include <math.h>
#include <stdint.h>
#include <stdio.h>

enum { N = 256, ROUNDS = 2300000 };
static double x[N], y[N], z[N], ux[N], uy[N], uz[N];

__attribute__((noinline)) static void unit(int n, double bias)
{
    for (int i = 0; i < n; i++) {
        double inv = 1.0 / sqrt(x[i] * x[i] + y[i] * y[i] + z[i] * z[i] + bias);
        ux[i] = x[i] * inv;
        uy[i] = y[i] * inv;
        uz[i] = z[i] * inv;
    }
}

int main(void)
{
    uint32_t s = 99;
    for (int i = 0; i < N; i++) {
        s = s * 1664525u + 1013904223u; x[i] = (double)(s >> 8) * 1e-6 + 0.1;
        s = s * 1664525u + 1013904223u; y[i] = (double)(s >> 8) * 1e-6 - 3.0;
        s = s * 1664525u + 1013904223u; z[i] = (double)(s >> 8) * 1e-6 - 7.0;
    }
    double sum = 0;
    for (int r = 0; r < ROUNDS; r++) {
        unit(N, (double)(r & 7) * 0.125);
        sum += ux[r & (N - 1)] + uy[(r + 5) & (N - 1)] - uz[(r + 9) & (N - 1)];
    }
    printf("checksum %.9g\n", sum);
    return 0;
}
