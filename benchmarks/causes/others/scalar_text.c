/* Planted: instruction_bound. Independent byte-wise work without vectors, in the L1. */
#include <stdint.h>
#include <stdio.h>

enum { LENGTH = 4096 };

__attribute__((optimize("no-tree-vectorize"))) static void map(const uint8_t *from, uint8_t *to) {
    for (int i = 0; i < LENGTH; ++i) {
        const uint8_t c = from[i];
        to[i] = (uint8_t)(((c ^ 0x5a) + (c >> 3)) ^ (c << 2));
    }
}

int main(void) {
    static uint8_t a[LENGTH], b[LENGTH];
    for (int i = 0; i < LENGTH; ++i) {
        a[i] = (uint8_t)(i * 7);
    }
    for (long pass = 0; pass < 500000L; ++pass) {
        map(a, b);
        __asm__ volatile("" : : "r"(b) : "memory");
    }
    printf("%u\n", b[77]);
    return 0;
}
