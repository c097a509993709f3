// Planted: dram_bandwidth_bound. A[i] = b[i] + s * c[i] over three arrays of 96 MiB with two OpenMP
// threads: streaming, limited by memory bandwidth.
// Build: -O3
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

int main(void)
{
    const long n = 12L << 20;
    size_t bytes = (size_t)n * sizeof(double);
    double *v[3];
    for (int k = 0; k < 3; k++) {
        v[k] = aligned_alloc(2 << 20, bytes);
        if (!v[k]) return 1;
        madvise(v[k], bytes, MADV_HUGEPAGE);
    }
    double *restrict a = v[0], *restrict b = v[1], *restrict c = v[2];
#pragma omp parallel for num_threads(2)
    for (long i = 0; i < n; i++) { a[i] = 0; b[i] = (double)(i & 15); c[i] = 0.5; }
    for (int t = 0; t < 220; t++) {
        double s = 1.0 + t;
#pragma omp parallel for num_threads(2) schedule(static)
        for (long i = 0; i < n; i++)
            a[i] = b[i] + s * c[i];
        b[t] += a[t];
    }
    double sum = 0;
    for (long i = 0; i < n; i += 4096) sum += a[i] + b[i];
    printf("checksum %.3f\n", sum);
    for (int k = 0; k < 3; k++) free(v[k]);
    return 0;
}
