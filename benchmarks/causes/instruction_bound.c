/* Many independent integer operations of one cycle each: the width of the core is the limit. */
#include <stdint.h>
#include <stdio.h>

int main(void) {
    volatile uint32_t start = 3;
    uint32_t a = start, b = a + 1, c = a + 2, d = a + 3, e = a + 4, f = a + 5;
    for (long i = 0; i < 1500000000L; ++i) {
        a += 3;
        b ^= 0x55;
        c += 7;
        d -= 5;
        e ^= 0x33;
        f += 9;
        __asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e), "+r"(f));
    }
    printf("%u\n", a ^ b ^ c ^ d ^ e ^ f);
    return 0;
}
