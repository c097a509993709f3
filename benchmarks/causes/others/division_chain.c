/* Planted: dependency_bound. Euclid's way: every division waits for the one before. */
#include <stdint.h>
#include <stdio.h>

int main(void) {
    volatile uint64_t start = 0xfedcba9876543210ULL;
    uint64_t x = start, sum = 0;
    for (long i = 0; i < 120000000L; ++i) {
        x = 0xffffffffffffffffULL / (x | 1) + (uint64_t)i;
        sum += x;
    }
    printf("%llu\n", (unsigned long long)sum);
    return 0;
}
