/* Planted: dram_latency_bound. Random updates of a table of half a gigabyte. */
/* Arguments: 26 60000000 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    int bits = argc > 1 ? atoi(argv[1]) : 20;
    long updates = argc > 2 ? atol(argv[2]) : 1000000;
    uint64_t size = (uint64_t)1 << bits, random = 1;
    uint64_t *table = malloc(size * sizeof *table);
    if (!table)
        return 1;
    for (uint64_t i = 0; i < size; i++)
        table[i] = i;
    for (long i = 0; i < updates; i++) {
        random = (random << 1) ^ ((int64_t)random < 0 ? 7 : 0);
        table[(random * 0x9e3779b97f4a7c15u) >> (64 - bits)] ^= random;
    }
    printf("%" PRIu64 "\n", table[size / 3]);
    return 0;
}
