// Planted: false_sharing. OpenMP histogram with one column a thread, bins laid out
// votes[bin][thread]: threads write different words of the same cache lines all the time.
#include <omp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { BINS = 4, MAXT = 4, BALLOTS = 8192, ROUNDS = 50000 };
static uint64_t votes[BINS][8] __attribute__((aligned(64)));
static uint8_t ballot[BALLOTS];

int main(void)
{
    uint32_t s = 21;
    for (int i = 0; i < BALLOTS; i++) {
        s = s * 1664525u + 1013904223u;
        ballot[i] = (uint8_t)(s >> 30);
    }
    int team = omp_get_num_procs();
    if (team < 2) team = 2;
    if (team > MAXT) team = MAXT;
#pragma omp parallel num_threads(team)
    {
        int me = omp_get_thread_num();
        for (int r = 0; r < ROUNDS; r++)
            for (int i = 0; i < BALLOTS; i++)
                votes[ballot[i]][me]++;
    }
    uint64_t sum = 0;
    for (int b = 0; b < BINS; b++)
        for (int t = 0; t < team; t++) sum = sum * 31 + votes[b][t];
    printf("checksum %llu\n", (unsigned long long)sum);
    return 0;
}
