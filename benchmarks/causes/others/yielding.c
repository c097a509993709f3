/* Planted: spin_bound. A thread that waits with sched_yield while the other works, in turns. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>

static atomic_int turn;

static void *play(void *number) {
    int me = (int)(intptr_t)number;
    uint64_t x = 1 + (uint64_t)me;
    for (int round = 0; round < 120; ++round) {
        while (atomic_load_explicit(&turn, memory_order_acquire) != me) {
            sched_yield();
        }
        for (int i = 0; i < 3000000; ++i) {
            x = (x >> 1) ^ (-(x & 1) & 0xd800000000000000ULL);
        }
        atomic_store_explicit(&turn, 1 - me, memory_order_release);
    }
    return (void *)(uintptr_t)x;
}

int main(void) {
    pthread_t other;
    pthread_create(&other, NULL, play, (void *)1);
    void *x = play((void *)0), *y;
    pthread_join(other, &y);
    printf("%p %p\n", x, y);
    return 0;
}
