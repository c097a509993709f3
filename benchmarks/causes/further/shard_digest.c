// Planted: imbalance. One forked process a CPU, each digests its own shards; shard sizes fall off
// geometrically, so (with two) the first process has some 4/5 of all work and the rest finish
// early.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static uint64_t digest(uint64_t seed, long rounds)
{
    uint32_t w[64];
    uint64_t acc = seed;
    for (int i = 0; i < 64; i++) w[i] = (uint32_t)(seed * 2654435761u + (unsigned)i * 40503u);
    for (long r = 0; r < rounds; r++) {
        for (int i = 0; i < 64; i++) {
            uint32_t a = w[i], b = w[(i + 13) & 63];
            w[i] = (a << 7 | a >> 25) ^ (b + (uint32_t)r);
        }
        acc += w[r & 63];
    }
    return acc;
}

int main(void)
{
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    int workers = cpus < 2 ? 2 : cpus > 8 ? 8 : (int)cpus;
    uint64_t *out = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (out == MAP_FAILED) return 1;
    enum { SHARDS = 8 };
    for (int p = 0; p < workers; p++) {
        pid_t pid = fork();
        if (pid < 0) return 1;
        if (pid == 0) {
            /* shard s belongs to process s * workers / SHARDS and has 0.7 times the work of the
             * one before */
            long size = 20000000;
            for (int s = 0; s < SHARDS; s++) {
                if (s * workers / SHARDS == p) out[s] = digest((uint64_t)s + 1, size);
                size = size * 7 / 10;
            }
            _exit(0);
        }
    }
    while (wait(NULL) > 0)
        ;
    uint64_t sum = 0;
    for (int s = 0; s < SHARDS; s++) sum = sum * 31 + out[s];
    printf("checksum %llx\n", (unsigned long long)sum);
    return 0;
}
