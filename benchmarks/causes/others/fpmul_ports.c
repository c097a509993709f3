/* Planted: port_bound. Twelve independent chains of multiplications: the units for them are full. */
#include <stdio.h>

int main(void) {
    volatile double start = 1.0000001;
    double f = start, x[12];
    for (int i = 0; i < 12; ++i) {
        x[i] = 1.0 + i;
    }
    double a = x[0], b = x[1], c = x[2], d = x[3], e = x[4], g = x[5];
    double h = x[6], i = x[7], j = x[8], k = x[9], l = x[10], m = x[11];
    for (long n = 0; n < 250000000L; ++n) {
        a *= f, b *= f, c *= f, d *= f, e *= f, g *= f;
        h *= f, i *= f, j *= f, k *= f, l *= f, m *= f;
        __asm__ volatile("" : "+x"(a), "+x"(b), "+x"(c), "+x"(d), "+x"(e), "+x"(g));
        __asm__ volatile("" : "+x"(h), "+x"(i), "+x"(j), "+x"(k), "+x"(l), "+x"(m));
    }
    printf("%g\n", a + b + c + d + e + g + h + i + j + k + l + m);
    return 0;
}
