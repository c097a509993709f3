/* A random cycle through a working set, one line a step: each load waits for the one before. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { LINE = 64 };

static void *chase(size_t bytes, long steps) {
    size_t count = bytes / LINE;
    char *lines = aligned_alloc(4096, bytes);
    size_t *order = malloc(count * sizeof *order);
    uint64_t x = 88172645463325252ULL;
    for (size_t i = 0; i < count; ++i) {
        order[i] = i;
    }
    for (size_t i = count - 1; i > 0; --i) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        size_t j = x % i;
        size_t kept = order[i];
        order[i] = order[j];
        order[j] = kept;
    }
    for (size_t i = 0; i < count; ++i) {
        *(void **)(lines + order[i] * LINE) = lines + order[(i + 1) % count] * LINE;
    }
    free(order);
    void *place = lines;
    for (long i = 0; i < steps; ++i) {
        place = *(void **)place;
    }
    return place;
}
