// Planted: imbalance. Pair sums where row i costs i*i/n, shared out with schedule(static): the last
// thread gets most of the work and the others wait at the end.
#include <omp.h>
#include <stdio.h>

enum { N = 5200 };
static double x[N];

int main(void)
{
    for (int i = 0; i < N; i++) x[i] = 1.0 + (i * 37 % 101) * 0.01;
    double energy = 0;
#pragma omp parallel for schedule(static) reduction(+ : energy)
    for (int i = 0; i < N; i++) {
        double e0 = 0, e1 = 0, e2 = 0, e3 = 0;
        for (int j = 0; j < i; j++)
            for (int k = 0; k + 3 < i / 4; k += 4) {
                e0 += x[k] * x[j];
                e1 += x[k + 1] * x[j];
                e2 += x[k + 2] * x[j];
                e3 += x[k + 3] * x[j];
            }
        energy += (e0 + e1 + e2 + e3) * x[i];
    }
    printf("checksum %.6e\n", energy);
    return 0;
}
