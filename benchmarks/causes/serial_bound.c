/* A long serial part in the main thread between short parallel ones. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>

static void *work(void *start) {
    uint64_t x = (uintptr_t)start;
    for (long i = 0; i < 10000000L; ++i) {
        x = x * 6364136223846793005ULL + 1;
    }
    return (void *)(uintptr_t)x;
}

static uint64_t collect(uint64_t x) {
    for (long i = 0; i < 60000000L; ++i) {
        x = (x ^ (x >> 3)) + 7;
    }
    return x;
}

int main(void) {
    uint64_t sum = 1;
    for (int step = 0; step < 12; ++step) {
        pthread_t team[2];
        for (int i = 0; i < 2; ++i) {
            pthread_create(&team[i], NULL, work, (void *)(intptr_t)(i + 1));
        }
        for (int i = 0; i < 2; ++i) {
            void *x;
            pthread_join(team[i], &x);
            sum += (uintptr_t)x;
        }
        sum = collect(sum);
    }
    printf("%llu\n", (unsigned long long)sum);
    return 0;
}
