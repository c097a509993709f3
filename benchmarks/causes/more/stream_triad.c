/* Planted: dram_bandwidth_bound. STREAM's triad with OpenMP on three arrays of 128 MB. */
/* Build: -O3 */
#include <stdio.h>
#include <stdlib.h>

#define N 16000000L

int main(int argc, char **argv)
{
    int times = argc > 1 ? atoi(argv[1]) : 60;
    double *a = malloc(N * sizeof *a), *b = malloc(N * sizeof *b), *c = malloc(N * sizeof *c);
    if (!a || !b || !c)
        return 1;
#pragma omp parallel for
    for (long i = 0; i < N; i++) {
        a[i] = 0;
        b[i] = 1;
        c[i] = 2;
    }
    for (int t = 0; t < times; t++)
#pragma omp parallel for
        for (long i = 0; i < N; i++)
            a[i] = b[i] + 3.0 * c[i];
    printf("%g\n", a[N / 2]);
    return 0;
}
