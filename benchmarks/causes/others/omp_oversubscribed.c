/* Planted: oversubscribed. Twelve OpenMP threads whatever the machine has. */
#include <math.h>
#include <omp.h>
#include <stdio.h>

int main(void) {
    double total = 0;
    omp_set_dynamic(0);
#pragma omp parallel for num_threads(12) reduction(+ : total) schedule(dynamic, 1000)
    for (long i = 0; i < 200000000L; ++i) {
        total += 1.0 / (1.0 + (double)i * (double)i);
    }
    printf("%g\n", total);
    return 0;
}
