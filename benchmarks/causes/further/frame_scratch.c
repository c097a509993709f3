// Planted: page_fault_bound. Every frame takes a fresh 64 MiB scratch buffer from malloc (mmap
// below), marks one word a page and frees it: all time is first-touch page faults.
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>

enum { FRAMES = 60 };
#define SCRATCH (64u << 20)

int main(void)
{
    /* 4 KiB pages, as on hosts without transparent huge pages */
    prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
    uint64_t sum = 0;
    for (int f = 0; f < FRAMES; f++) {
        uint8_t *tile = malloc(SCRATCH);
        if (!tile) return 1;
        for (size_t off = (size_t)f & 63; off < SCRATCH; off += 4096)
            tile[off] = (uint8_t)(off >> 12) ^ (uint8_t)f;
        sum = sum * 31 + tile[(size_t)(f & 63) + 4096 * (size_t)(3 * f + 5)];
        free(tile);
    }
    printf("checksum %llu\n", (unsigned long long)sum);
    return 0;
}
