/* Planted: serial_bound. Each round: a long serial recurrence, then a short parallel loop. */
#include <stdio.h>
#include <stdlib.h>

#define N 100000

int main(void)
{
    double *a = malloc(N * sizeof *a);
    if (!a)
        return 1;
    for (int i = 0; i < N; i++)
        a[i] = i;
    for (int round = 0; round < 2000; round++) {
        for (int i = 1; i < N; i++)
            a[i] = 0.5 * a[i - 1] + a[i] * 0.5 + 1.0;
#pragma omp parallel for
        for (int i = 0; i < N; i++)
            a[i] = a[i] * 0.999 + 1.0;
    }
    printf("%g\n", a[N - 1]);
    free(a);
    return 0;
}
