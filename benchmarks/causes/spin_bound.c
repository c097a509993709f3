/* Two threads that hand a word to each other: one always spins while the other works. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>

static atomic_int turn;

static uint64_t work(uint64_t x) {
    for (int i = 0; i < 2000000; ++i) {
        x = x * 6364136223846793005ULL + 1;
    }
    return x;
}

static void *play(void *number) {
    int me = (int)(intptr_t)number;
    uint64_t x = 1;
    for (int round = 0; round < 150; ++round) {
        while (atomic_load(&turn) != me) {
        }
        x = work(x);
        atomic_store(&turn, 1 - me);
    }
    return (void *)(uintptr_t)x;
}

int main(void) {
    pthread_t other;
    pthread_create(&other, NULL, play, (void *)1);
    void *x = play((void *)0);
    pthread_join(other, NULL);
    printf("%p\n", x);
    return 0;
}
