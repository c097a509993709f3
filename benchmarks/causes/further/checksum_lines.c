// Planted: dependency_bound. FNV-1a over a 16 KiB text, byte by byte: every xor+multiply waits for
// the one before (latency chain of 4 cycles a byte).
#include <stdint.h>
#include <stdio.h>

enum { LEN = 16384, ROUNDS = 150000 };
static uint8_t text[LEN];

__attribute__((noinline)) static uint64_t fnv(uint64_t h, const uint8_t *p, int n)
{
    for (int i = 0; i < n; i++) {
        h ^= p[i];
        h *= 1099511628211ull;
    }
    return h;
}

int main(void)
{
    for (int i = 0; i < LEN; i++)
        text[i] = (uint8_t)("lorem ipsum dolor sit amet "[i % 27]);
    uint64_t h = 14695981039346656037ull;
    for (int r = 0; r < ROUNDS; r++)
        h = fnv(h, text, LEN);
    printf("checksum %016llx\n", (unsigned long long)h);
    return 0;
}
