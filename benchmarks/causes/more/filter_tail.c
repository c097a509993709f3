/* Planted: denormals, instruction_bound. A recursive filter whose state fades into denormal numbers.
   Cores that take no longer for these are kept busy by its many instructions. */
#include <stdio.h>

#define BANK 64

int main(void)
{
    static float state[BANK], gain[BANK];
    for (int i = 0; i < BANK; i++) {
        state[i] = 1e-38f;
        gain[i] = 0.9999999f;
    }
    for (int t = 0; t < 250000000; t++)
        for (int i = 0; i < BANK; i += 8)
            state[i] = state[i] * gain[i] + 1e-42f;
    printf("%g\n", state[3] + state[8]);
    return 0;
}
