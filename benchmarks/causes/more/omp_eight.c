/* Planted: oversubscribed. An OpenMP program that insists on many more threads than there are CPUs. */
#include <math.h>
#include <omp.h>
#include <stdio.h>

int main(void)
{
    double total = 0;
    int threads = 4 * omp_get_num_procs();
    omp_set_num_threads(threads);
    for (int step = 0; step < 40; step++) {
#pragma omp parallel for reduction(+ : total)
        for (int i = 0; i < 4000000; i++)
            total += sin(i * 1e-3);
    }
    printf("%g\n", total);
    return 0;
}
