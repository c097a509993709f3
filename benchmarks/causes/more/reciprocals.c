/* Planted: port_bound. Divides and takes roots of independent numbers: the divider is always busy. */
#include <math.h>
#include <stdio.h>

#define N 1024

int main(void)
{
    static double in[N], out[N];
    double total = 0;
    for (int i = 0; i < N; i++)
        in[i] = i + 1.5;
    for (int round = 0; round < 150000; round++) {
        for (int i = 0; i < N; i++)
            out[i] = sqrt(in[i]) / (in[i] + round);
        total += out[round % N];
    }
    printf("%g\n", total);
    return 0;
}
