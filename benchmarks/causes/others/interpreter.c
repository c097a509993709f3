/* Planted: branch_bound, frontend_bound. A switch over random opcodes, too many to be learned. */
#include <stdint.h>
#include <stdio.h>

enum { LENGTH = 1 << 16 };

int main(void) {
    static unsigned char program[LENGTH];
    uint32_t x = 7;
    for (int i = 0; i < LENGTH; ++i) {
        x ^= x << 13;
        x ^= x >> 17;
        x ^= x << 5;
        program[i] = (unsigned char)(x >> 13) & 15;
    }
    uint64_t a = 1, b = 2, c = 3;
    for (int pass = 0; pass < 1500; ++pass) {
        for (int i = 0; i < LENGTH; ++i) {
            switch (program[i]) {
            case 0: a += b; break;
            case 1: b ^= a << 3; break;
            case 2: c -= a; break;
            case 3: a = ~a + c; break;
            case 4: b += 17; break;
            case 5: c ^= b >> 5; break;
            case 6: a -= c << 1; break;
            case 7: b = a | 1; break;
            case 8: c += b & 0xff; break;
            case 9: a ^= 0x55; break;
            case 10: b -= 3; break;
            case 11: c = c << 7 | c >> 57; break;
            case 12: a += i; break;
            case 13: b ^= c; break;
            case 14: c += 5; break;
            default: a ^= b; break;
            }
        }
    }
    printf("%llu\n", (unsigned long long)(a ^ b ^ c));
    return 0;
}
