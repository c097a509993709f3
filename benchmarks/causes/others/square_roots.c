/* Planted: port_bound. Independent square roots: one unit does them all, and not pipelined. */
#include <math.h>
#include <stdio.h>

int main(void) {
    volatile double start = 2.0;
    double a = start, b = a + 1, c = a + 2, d = a + 3, e = a + 4, f = a + 5;
    double s = 0, t = 0, u = 0, v = 0, w = 0, x = 0;
    for (long i = 0; i < 60000000L; ++i) {
        s += sqrt(a);
        t += sqrt(b);
        u += sqrt(c);
        v += sqrt(d);
        w += sqrt(e);
        x += sqrt(f);
        __asm__ volatile("" : "+x"(a), "+x"(b), "+x"(c), "+x"(d), "+x"(e), "+x"(f));
    }
    printf("%g\n", s + t + u + v + w + x);
    return 0;
}
