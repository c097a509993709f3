/* Planted: dram_latency_bound, dram_bandwidth_bound. A large matrix read down its columns. */
#include <stdio.h>
#include <stdlib.h>

int main(void) {
    const size_t size = 8192 + 16;
    float *m = malloc(size * size * sizeof *m);
    for (size_t i = 0; i < size * size; ++i) {
        m[i] = (float)i;
    }
    float sum = 0;
    for (int pass = 0; pass < 6; ++pass) {
        for (size_t column = pass; column < size; column += 3) {
            for (size_t row = 0; row < size; ++row) {
                sum += m[row * size + column];
            }
        }
    }
    printf("%g\n", (double)sum);
    return 0;
}
