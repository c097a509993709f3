/* Planted: frontend_bound. Straight code of half a megabyte, without branches, run again and again. */
#include <stdio.h>

#define STEP(n)                                                                                    \
    a ^= 0x12345 + n;                                                                              \
    b += 0x54321 + n;                                                                              \
    c ^= 0x23456 + n;                                                                              \
    d += 0x65432 + n;                                                                              \
    a += 0x34567 + n;                                                                              \
    b ^= 0x76543 + n;                                                                              \
    c += 0x45678 + n;                                                                              \
    d ^= 0x87654 + n;
#define S4(n) STEP(n) STEP(n + 1) STEP(n + 2) STEP(n + 3)
#define S16(n) S4(n) S4(n + 4) S4(n + 8) S4(n + 12)
#define S64(n) S16(n) S16(n + 16) S16(n + 32) S16(n + 48)
#define S256(n) S64(n) S64(n + 64) S64(n + 128) S64(n + 192)
#define S1024(n) S256(n) S256(n + 256) S256(n + 512) S256(n + 768)
#define S4096(n) S1024(n) S1024(n + 1024) S1024(n + 2048) S1024(n + 3072)

int main(void)
{
    volatile unsigned seed = 1;
    unsigned a = seed, b = seed + 1, c = seed + 2, d = seed + 3;
    for (int i = 0; i < 160000; i++) {
        S4096(1)
        S4096(5000)
    }
    printf("%u\n", a ^ b ^ c ^ d);
    return 0;
}
