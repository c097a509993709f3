/* Planted: denormals, dependency_bound. A filter rings out into silence: denormal state, for ever. */
#include <stdio.h>

int main(void) {
    volatile double decay = 0.9999999;
    double y1 = 1e-300, y2 = 1e-300, g = decay, sum = 0;
    for (long i = 0; i < 250000000L; ++i) {
        const double y = 1.6 * g * y1 - 0.64 * y2;
        y2 = y1;
        y1 = y + 5e-324;
        sum += y;
    }
    printf("%g\n", sum);
    return 0;
}
