/* Planted: dependency_bound. A polynomial of high degree by Horner's rule: one long float chain. */
#include <stdio.h>

#define DEGREE 1000

int main(void)
{
    double c[DEGREE + 1];
    double total = 0;
    for (int i = 0; i <= DEGREE; i++)
        c[i] = 1.0 / (i + 1);
    for (int k = 0; k < 250000; k++) {
        double x = k * 1e-6 + total * 1e-12, p = 0;
        for (int i = DEGREE; i >= 0; i--)
            p = p * x + c[i];
        total += p;
    }
    printf("%g\n", total);
    return 0;
}
