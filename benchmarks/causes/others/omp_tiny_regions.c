/* Planted: spin_bound. A barrier after every few hundred operations, with uneven luck. */
#include <stdint.h>
#include <stdio.h>

int main(void) {
    uint64_t sums[8 * 8] = {0};
#pragma omp parallel num_threads(2)
    {
        uint64_t x = 1;
        for (int step = 0; step < 8000; ++step) {
#pragma omp for schedule(static, 1)
            for (int half = 0; half < 2; ++half) {
                const int heavy = (step + half) & 1;
                for (int i = 0; i < (heavy ? 20000 : 200); ++i) {
                    x = x * 6364136223846793005ULL + 1;
                }
                sums[half * 8] += x;
            }
        }
    }
    printf("%llu\n", (unsigned long long)(sums[0] + sums[8]));
    return 0;
}
