/* Planted: instruction_bound, dependency_bound. A matrix product compiled without optimisation. */
/* Build: -O0 -g */
#include <stdio.h>
#include <stdlib.h>

#define N 96

static double a[N][N], b[N][N], c[N][N];

int main(void)
{
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            a[i][j] = rand() % 10;
            b[i][j] = rand() % 10;
        }
    for (int round = 0; round < 700; round++)
        for (int i = 0; i < N; i++)
            for (int j = 0; j < N; j++) {
                c[i][j] = 0;
                for (int k = 0; k < N; k++)
                    c[i][j] += a[i][k] * b[k][j];
            }
    printf("%g\n", c[N / 2][N / 3]);
    return 0;
}
