// Planted: l3_bound. The decode loop of an inverse Burrows-Wheeler transform (p = tt[p] >> 8) on
// blocks of 4 L2 sizes and at least 3 MiB: dependent loads that miss L2 and hit L3.
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static long l3_size(void)
{
    long k = 0;
    FILE *f = fopen("/sys/devices/system/cpu/cpu0/cache/index3/size", "r");
    if (f) {
        if (fscanf(f, "%ld", &k) != 1) k = 0;
        fclose(f);
    }
    return k > 0 ? k * 1024 : 32L << 20;
}

int main(void)
{
    long l2 = sysconf(_SC_LEVEL2_CACHE_SIZE), l3 = l3_size();
    if (l2 <= 0) l2 = 512 * 1024;
    long bytes = 4 * l2;
    if (bytes < 3L << 20) bytes = 3L << 20;
    if (bytes > l3 / 3) bytes = l3 / 3;
    if (bytes > 60L << 20) bytes = 60L << 20;
    uint32_t n = (uint32_t)(bytes / 4);
    size_t cap = ((size_t)bytes + (2 << 20) - 1) & ~(size_t)((2 << 20) - 1);
    uint32_t *tt = aligned_alloc(2 << 20, cap);
    uint8_t *last = malloc(n);
    if (!tt || !last) return 1;
    madvise(tt, cap, MADV_HUGEPAGE);
    uint64_t s = 5;
    uint32_t count[257] = {0};
    for (uint32_t i = 0; i < n; i++) {
        s = s * 6364136223846793005ull + 1442695040888963407ull;
        last[i] = (uint8_t)(s >> 56);
        count[last[i] + 1]++;
    }
    for (int c = 0; c < 256; c++) count[c + 1] += count[c];
    for (uint32_t i = 0; i < n; i++) tt[i] = last[i];
    for (uint32_t i = 0; i < n; i++) tt[count[last[i]]++] |= i << 8;
    free(last);

    /* decode: a random column gives several cycles, so restart at spread-out rows */
    uint64_t sum = 0;
    uint32_t start = 0;
    for (int block = 0; block < 80; block++) {
        uint32_t p = tt[start] >> 8;
        for (int i = 0; i < 1500000; i++) {
            uint32_t e = tt[p];
            sum = sum + (e & 0xff);
            p = e >> 8;
        }
        sum = sum * 31 + p;
        start = (start + n / 7 * 3 + 11) % n;
    }
    printf("checksum %llu\n", (unsigned long long)sum);
    free(tt);
    return 0;
}
