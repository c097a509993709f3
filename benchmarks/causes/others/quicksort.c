/* Planted: branch_bound. Quicksort of random numbers: half of its comparisons are mispredicted. */
#include <stdint.h>
#include <stdio.h>

enum { COUNT = 1 << 14 };

static void sort(uint32_t *data, long count) {
    while (count > 8) {
        const uint32_t pivot = data[count / 2];
        long i = -1, j = count;
        for (;;) {
            do {
                ++i;
            } while (data[i] < pivot);
            do {
                --j;
            } while (data[j] > pivot);
            if (i >= j) {
                break;
            }
            const uint32_t kept = data[i];
            data[i] = data[j];
            data[j] = kept;
        }
        sort(data, j + 1);
        data += j + 1;
        count -= j + 1;
    }
    for (long i = 1; i < count; ++i) {
        const uint32_t one = data[i];
        long j = i;
        for (; j > 0 && data[j - 1] > one; --j) {
            data[j] = data[j - 1];
        }
        data[j] = one;
    }
}

int main(void) {
    static uint32_t data[COUNT];
    uint32_t x = 1, sum = 0;
    for (int pass = 0; pass < 2200; ++pass) {
        for (int i = 0; i < COUNT; ++i) {
            x ^= x << 13;
            x ^= x >> 17;
            x ^= x << 5;
            data[i] = x;
        }
        sort(data, COUNT);
        sum += data[COUNT / 3];
    }
    printf("%u\n", sum);
    return 0;
}
