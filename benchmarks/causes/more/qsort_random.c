/* Planted: branch_bound. The C library's qsort on random integers. */
#include <stdio.h>
#include <stdlib.h>

#define N 100000

static int compare(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;
    if (x < y)
        return -1;
    if (x > y)
        return 1;
    return 0;
}

int main(void)
{
    static int numbers[N];
    long check = 0;
    srand(42);
    for (int round = 0; round < 150; round++) {
        for (int i = 0; i < N; i++)
            numbers[i] = rand();
        qsort(numbers, N, sizeof *numbers, compare);
        check += numbers[N / 2];
    }
    printf("%ld\n", check);
    return 0;
}
