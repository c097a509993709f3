/* Planted: l2_bound. A random permutation of indices in 384 KiB is followed step by step. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int main(void) {
    const uint32_t count = (384u << 10) / sizeof(uint32_t);
    uint32_t *next = malloc(count * sizeof *next);
    uint32_t x = 12345;
    for (uint32_t i = 0; i < count; ++i) {
        next[i] = i;
    }
    for (uint32_t i = count - 1; i > 0; --i) { /* Sattolo: one cycle */
        x = x * 1664525u + 1013904223u;
        const uint32_t j = (uint32_t)(((uint64_t)x * i) >> 32);
        const uint32_t kept = next[i];
        next[i] = next[j];
        next[j] = kept;
    }
    uint32_t place = 0;
    for (long i = 0; i < 300000000L; ++i) {
        place = next[place];
    }
    printf("%u\n", place);
    return 0;
}
