/* A branch on random bits: half of its predictions are wrong. */
#include <stdint.h>
#include <stdio.h>

int main(void) {
    volatile uint64_t seed = 88172645463325252ULL;
    uint64_t x = seed, sum = 0;
    for (long i = 0; i < 120000000L; ++i) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        if (x & 1) {
            __asm__ volatile("add $3, %0" : "+r"(sum));
        } else {
            __asm__ volatile("xor $5, %0" : "+r"(sum));
        }
    }
    printf("%llu\n", (unsigned long long)sum);
    return 0;
}
