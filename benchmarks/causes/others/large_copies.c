/* Planted: dram_bandwidth_bound. memcpy of 192 MiB, again and again. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(void) {
    const size_t size = 192u << 20;
    char *from = malloc(size), *to = malloc(size);
    memset(from, 1, size);
    memset(to, 2, size);
    for (int pass = 0; pass < 60; ++pass) {
        memcpy(to, from, size);
        from[pass] = to[size - 1];
    }
    printf("%d\n", to[size / 2]);
    return 0;
}
