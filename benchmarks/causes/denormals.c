/* A filter whose state decays into denormal numbers. */
#include <stdio.h>

int main(void) {
    volatile float tiny = 1e-39f, factor = 0.999f;
    float state[8];
    float f = factor, t = tiny;
    for (int j = 0; j < 8; ++j) {
        state[j] = t * (float)(j + 1);
    }
    for (long i = 0; i < 200000000L; ++i) {
        for (int j = 0; j < 8; ++j) {
            state[j] = state[j] * f + t;
        }
        __asm__ volatile("" : : "r"(state) : "memory");
    }
    printf("%g\n", (double)(state[0] + state[7]));
    return 0;
}
