/* Planted: dependency_bound. Kahan's compensated sum over a small array. */
#include <stdio.h>

#define N 2048

int main(void)
{
    static float a[N];
    float sum = 0, lost = 0;
    for (int i = 0; i < N; i++)
        a[i] = 1.0f / (i + 1);
    for (int round = 0; round < 120000; round++)
        for (int i = 0; i < N; i++) {
            float y = a[i] - lost;
            float t = sum + y;
            lost = (t - sum) - y;
            sum = t;
        }
    printf("%g\n", sum);
    return 0;
}
