/* Planted: dram_bandwidth_bound. a = b + s * c over three arrays of 128 MiB. */
#include <stdio.h>
#include <stdlib.h>

int main(void) {
    const size_t count = 16u << 20;
    double *a = malloc(count * sizeof *a), *b = malloc(count * sizeof *b);
    double *c = malloc(count * sizeof *c);
    for (size_t i = 0; i < count; ++i) {
        a[i] = 0;
        b[i] = 1;
        c[i] = 2;
    }
    for (int pass = 0; pass < 60; ++pass) {
        for (size_t i = 0; i < count; ++i) {
            a[i] = b[i] + 3.0 * c[i];
        }
        __asm__ volatile("" : : "r"(a) : "memory");
    }
    printf("%g\n", a[count / 2]);
    return 0;
}
