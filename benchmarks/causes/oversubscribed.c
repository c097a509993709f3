/* Eight times as many busy threads as CPUs. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void *work(void *start) {
    uint64_t x = (uintptr_t)start;
    for (long i = 0; i < 50000000L; ++i) {
        x = x * 6364136223846793005ULL + 1;
    }
    return (void *)(uintptr_t)x;
}

int main(void) {
    long count = 8 * sysconf(_SC_NPROCESSORS_ONLN);
    pthread_t *team = malloc((size_t)count * sizeof *team);
    uintptr_t sum = 0;
    for (long i = 0; i < count; ++i) {
        pthread_create(&team[i], NULL, work, (void *)i);
    }
    for (long i = 0; i < count; ++i) {
        void *x;
        pthread_join(team[i], &x);
        sum += (uintptr_t)x;
    }
    printf("%zu\n", (size_t)sum);
    return 0;
}
