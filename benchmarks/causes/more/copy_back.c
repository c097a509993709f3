/* Planted: dram_bandwidth_bound. Copies 200 MB to and fro with memcpy. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(void)
{
    size_t size = 200u << 20;
    char *a = malloc(size), *b = malloc(size);
    if (!a || !b)
        return 1;
    memset(a, 1, size);
    memset(b, 2, size);
    for (int i = 0; i < 15; i++) {
        memcpy(b, a, size);
        a[i] = b[size - 1 - i];
        memcpy(a, b, size);
    }
    printf("%d\n", a[size / 2]);
    return 0;
}
