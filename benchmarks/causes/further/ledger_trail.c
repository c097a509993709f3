// Planted: dram_latency_bound. Follows a scattered chain of 64-byte ledger records through 256 MiB
// and more (8 L3 sizes, at most 1 GiB): one dependent DRAM access a record.
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

struct record { uint64_t prev; uint64_t amount; uint64_t note[6]; };

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
    size_t bytes = 256u << 20;
    while ((long)bytes < 8 * l3_size() && bytes < (1024u << 20)) bytes *= 2;
    uint64_t n = bytes / sizeof(struct record);
    struct record *r = aligned_alloc(2 << 20, bytes);
    if (!r) return 1;
    madvise(r, bytes, MADV_HUGEPAGE);
    /* full-period generator modulo a power of two: one cycle through all records */
    for (uint64_t i = 0; i < n; i++) {
        r[i].prev = (i * 2862933555777941757ull + 3037000493ull) & (n - 1);
        r[i].amount = i ^ (i >> 3);
    }
    uint64_t p = 1, sum = 0;
    for (long step = 0; step < 25000000; step++) {
        sum += r[p].amount;
        p = r[p].prev;
    }
    printf("checksum %llu\n", (unsigned long long)(sum ^ p));
    free(r);
    return 0;
}
