/* Sums over 256 MiB, again and again. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(void) {
    size_t count = (256u << 20) / sizeof(uint64_t);
    uint64_t *data = malloc(count * sizeof *data);
    memset(data, 1, count * sizeof *data);
    uint64_t a = 0, b = 0, c = 0, d = 0;
    for (int pass = 0; pass < 60; ++pass) {
        for (size_t i = 0; i < count; i += 8) { /* one line */
            a += data[i];
            b += data[i + 2];
            c += data[i + 4];
            d += data[i + 6];
        }
        __asm__ volatile("" : "+r"(a) : : "memory");
    }
    printf("%llu\n", (unsigned long long)(a + b + c + d));
    return 0;
}
