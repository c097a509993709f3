/* Planted: imbalance. A triangular loop, divided by OpenMP into equal numbers of rows. */
#include <stdint.h>
#include <stdio.h>

enum { COUNT = 22000 };

int main(void) {
    static uint32_t rows[COUNT];
    for (int pass = 0; pass < 6; ++pass) {
#pragma omp parallel for schedule(static)
        for (int i = 0; i < COUNT; ++i) {
            uint32_t x = rows[i] + 1;
            for (int j = 0; j < i; ++j) {
                x = x * 1664525u + 1013904223u;
            }
            rows[i] = x;
        }
    }
    printf("%u\n", rows[COUNT - 1]);
    return 0;
}
