/* One chain of floating-point additions: each waits for the one before. */
#include <stdio.h>

int main(void) {
    volatile double step = 1e-9;
    double sum = 0.0, x = step;
    for (long i = 0; i < 800000000L; ++i) {
        sum += x;
        __asm__ volatile("" : "+x"(sum));
    }
    printf("%g\n", sum);
    return 0;
}
