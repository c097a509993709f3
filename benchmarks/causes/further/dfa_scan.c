// Planted: l2_bound. Table-driven automaton (dense transition table of half the L2, some 256 KiB to
// 768 KiB) over random symbols: each transition is a dependent load that misses L1 and hits L2.
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SYMBOLS = 256, TEXT = 4096 };

int main(void)
{
    long l2 = sysconf(_SC_LEVEL2_CACHE_SIZE);
    if (l2 < 256 * 1024) l2 = 512 * 1024;
    long want = l2 / 2;
    if (want > 768 * 1024) want = 768 * 1024;
    long states = want / (SYMBOLS * (long)sizeof(uint16_t));
    uint16_t *next = aligned_alloc(2 << 20, 2 << 20);
    static uint8_t text[TEXT];
    if (!next) return 1;
    madvise(next, 2 << 20, MADV_HUGEPAGE);
    uint32_t s = 17;
    /* every symbol permutes the states, so no state drops out */
    for (int c = 0; c < SYMBOLS; c++) {
        for (long i = 0; i < states; i++) next[i * SYMBOLS + c] = (uint16_t)i;
        for (long i = states - 1; i > 0; i--) {
            s = s * 1664525u + 1013904223u;
            long j = (long)((s >> 8) % (uint32_t)(i + 1));
            uint16_t t = next[i * SYMBOLS + c];
            next[i * SYMBOLS + c] = next[j * SYMBOLS + c];
            next[j * SYMBOLS + c] = t;
        }
    }
    for (int i = 0; i < TEXT; i++) { s = s * 1664525u + 1013904223u; text[i] = (uint8_t)(s >> 24); }
    uint32_t st = 0;
    uint64_t accepted = 0;
    for (int round = 0; round < 110000; round++) {
        uint8_t salt = (uint8_t)((unsigned)round * 151u >> 3);
        for (int i = 0; i < TEXT; i++)
            st = next[st * SYMBOLS + (uint8_t)(text[i] ^ salt)];
        accepted += st;
    }
    printf("checksum %llu\n", (unsigned long long)accepted);
    free(next);
    return 0;
}
