// Planted: branch_bound. Switch interpreter over 4 MiB of random opcodes: the jump of each
// instruction is unpredictable, so mispredictions take most of the time.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { LEN = 4 << 20, PASSES = 60 };

__attribute__((noinline)) static uint64_t run(const uint8_t *code, int n, uint64_t acc)
{
    uint64_t reg = 7, calls = 0;
    for (int pc = 0; pc < n; pc++) {
        switch (code[pc]) {
        case 0: acc += reg; break;
        case 1: reg ^= acc >> 3; break;
        case 2: acc = acc << 1 | acc >> 63; break;
        case 3: calls++; break;
        case 4: reg = acc - calls; break;
        case 5: acc ^= 0x55aa; break;
        case 6: reg += 0x1234; calls += reg & 1; break;
        case 7: acc = ~acc; reg++; break;
        }
    }
    return acc ^ reg ^ calls;
}

int main(void)
{
    uint8_t *code = malloc(LEN);
    if (!code) return 1;
    uint64_t s = 2463534242u;
    for (int i = 0; i < LEN; i++) {
        s ^= s << 13; s ^= s >> 7; s ^= s << 17;
        code[i] = (uint8_t)((s >> 33) & 7);
    }
    uint64_t acc = 1;
    for (int p = 0; p < PASSES; p++)
        acc = run(code, LEN, acc);
    printf("checksum %llx\n", (unsigned long long)acc);
    free(code);
    return 0;
}
