/* Planted: dependency_bound. Squares modulo a prime, again and again: a chain of divisions. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    uint64_t rounds = argc > 1 ? strtoull(argv[1], NULL, 10) : 150000000;
    uint64_t m = argc > 2 ? strtoull(argv[2], NULL, 10) : 4294967291u;
    uint64_t x = 3;
    for (uint64_t i = 0; i < rounds; i++)
        x = x * x % m + 1;
    printf("%" PRIu64 "\n", x);
    return 0;
}
