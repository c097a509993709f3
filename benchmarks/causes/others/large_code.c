/* Planted: frontend_bound. Straight code of megabytes, run through from end to end. */
#include <stdint.h>
#include <stdio.h>

#define STEP(n) \
    a += UINT64_C(0x123456789) + (n); \
    b ^= UINT64_C(0x876543210) + (n); \
    c += UINT64_C(0xabcdef012) + (n); \
    d ^= UINT64_C(0xfedcba987) + (n); \
    __asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d));
#define STEP8(n) STEP(n) STEP(n + 1) STEP(n + 2) STEP(n + 3) STEP(n + 4) STEP(n + 5) STEP(n + 6) \
    STEP(n + 7)
#define STEP64(n) STEP8(n) STEP8(n + 8) STEP8(n + 16) STEP8(n + 24) STEP8(n + 32) STEP8(n + 40) \
    STEP8(n + 48) STEP8(n + 56)
#define STEP512(n) STEP64(n) STEP64(n + 64) STEP64(n + 128) STEP64(n + 192) STEP64(n + 256) \
    STEP64(n + 320) STEP64(n + 384) STEP64(n + 448)
#define STEP4096(n) STEP512(n) STEP512(n + 512) STEP512(n + 1024) STEP512(n + 1536) \
    STEP512(n + 2048) STEP512(n + 2560) STEP512(n + 3072) STEP512(n + 3584)

int main(void) {
    volatile uint64_t start = 3;
    uint64_t a = start, b = a + 1, c = a + 2, d = a + 3;
    for (int pass = 0; pass < 12000; ++pass) {
        STEP4096(0)
        STEP4096(4096)
        STEP4096(8192)
        STEP4096(12288)
    }
    printf("%llu\n", (unsigned long long)(a ^ b ^ c ^ d));
    return 0;
}
