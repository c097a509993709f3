/* Planted: false_sharing. OpenMP threads add into neighbouring elements of one small array. */
/* Build: -O1 -g */
#include <omp.h>
#include <stdio.h>

#define N 1000000000L

static volatile long sums[64];

int main(void)
{
#pragma omp parallel
    {
        int me = omp_get_thread_num();
#pragma omp for
        for (long i = 0; i < N; i++)
            sums[me] += i & 3;
    }
    long total = 0;
    for (int t = 0; t < 64; t++)
        total += sums[t];
    printf("%ld\n", total);
    return 0;
}
