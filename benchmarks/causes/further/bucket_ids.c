// Planted: port_bound. Key % buckets for a 16 KiB array of 64-bit keys with a run-time divisor:
// independent 64-bit divides, so the one integer divider is the limit.
#include <stdint.h>
#include <stdio.h>

enum { N = 2048, ROUNDS = 520000 };
static uint64_t key[N];

__attribute__((noinline)) static uint64_t assign(const uint64_t *k, int n, uint64_t buckets)
{
    uint64_t sum = 0;
    for (int i = 0; i < n; i++)
        sum += k[i] % buckets;
    return sum;
}

int main(void)
{
    uint64_t s = 1;
    for (int i = 0; i < N; i++) {
        s = s * 6364136223846793005ull + 1442695040888963407ull;
        key[i] = s;
    }
    uint64_t sum = 0;
    for (int r = 0; r < ROUNDS; r++)
        sum ^= assign(key, N, 1000003 + 2 * (uint64_t)(r & 1023)) + (uint64_t)r;
    printf("checksum %llu\n", (unsigned long long)sum);
    return 0;
}
