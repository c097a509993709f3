/* Two threads that count in neighbouring words of one line. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>

static volatile uint64_t counters[8] __attribute__((aligned(64)));

static void *count(void *number) {
    volatile uint64_t *mine = &counters[(intptr_t)number];
    for (long i = 0; i < 500000000L; ++i) {
        ++*mine;
    }
    return NULL;
}

int main(void) {
    pthread_t team[2];
    for (int i = 0; i < 2; ++i) {
        pthread_create(&team[i], NULL, count, (void *)(intptr_t)i);
    }
    for (int i = 0; i < 2; ++i) {
        pthread_join(team[i], NULL);
    }
    printf("%llu\n", (unsigned long long)(counters[0] + counters[1]));
    return 0;
}
