/* Independent 64-bit multiplications: one port does them all. */
#include <stdint.h>
#include <stdio.h>

int main(void) {
    volatile uint64_t start = 3, factor = 0x5851f42d4c957f2d;
    uint64_t m = factor, a = start, b = a + 1, c = a + 2, d = a + 3, e = a + 4, f = a + 5;
    for (long i = 0; i < 600000000L; ++i) {
        a *= m;
        b *= m;
        c *= m;
        d *= m;
        e *= m;
        f *= m;
        __asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e), "+r"(f));
    }
    printf("%llu\n", (unsigned long long)(a ^ b ^ c ^ d ^ e ^ f));
    return 0;
}
