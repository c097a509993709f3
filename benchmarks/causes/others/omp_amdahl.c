/* Planted: serial_bound. OpenMP regions between serial sums; the other threads spin meanwhile. */
#include <math.h>
#include <stdio.h>

enum { COUNT = 1 << 14 };
static double data[COUNT];

static double reduce(void) {
    double sum = 0;
    for (int r = 0; r < 40; ++r) {
        for (int i = 0; i < COUNT; ++i) {
            sum = sum * 0.999 + data[i];
        }
    }
    return sum;
}

int main(void) {
    double total = 0;
    for (int step = 0; step < 150; ++step) {
#pragma omp parallel for
        for (int i = 0; i < COUNT; ++i) {
            data[i] = sqrt(data[i] + i) + step;
        }
        total += reduce();
    }
    printf("%g\n", total);
    return 0;
}
