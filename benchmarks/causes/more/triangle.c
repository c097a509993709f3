/* Planted: imbalance. A triangular loop cut into equal pieces: the last thread has the most. */
#include <math.h>
#include <stdio.h>

#define N 50000

int main(void)
{
    double total = 0;
#pragma omp parallel for schedule(static) reduction(+ : total)
    for (int i = 0; i < N; i++)
        for (int j = 0; j < i; j++)
            total += (double)(i ^ j) * 1e-3;
    printf("%g\n", total);
    return 0;
}
