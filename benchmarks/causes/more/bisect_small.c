/* Planted: branch_bound. Binary search of random keys in a table that fits in the first cache. */
#include <stdio.h>
#include <stdlib.h>

#define N 2000

static int table[N];

static int find(int key)
{
    int low = 0, high = N - 1;
    while (low <= high) {
        int middle = (low + high) / 2;
        if (table[middle] == key)
            return middle;
        if (table[middle] < key)
            low = middle + 1;
        else
            high = middle - 1;
    }
    return -1;
}

int main(void)
{
    long found = 0;
    unsigned state = 12345;
    for (int i = 0; i < N; i++)
        table[i] = 5 * i;
    for (int i = 0; i < 15000000; i++) {
        state = state * 1664525u + 1013904223u;
        found += find((int)((state >> 8) % (5 * N))) >= 0;
    }
    printf("%ld\n", found);
    return 0;
}
