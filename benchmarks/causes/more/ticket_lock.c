/* Planted: spin_bound. Threads that want a ticket lock, held for most of the time, spin for it. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

static atomic_uint next_ticket, serving;
static double shared;

static void *work(void *unused)
{
    (void)unused;
    for (int i = 0; i < 1000; i++) {
        unsigned mine = atomic_fetch_add(&next_ticket, 1);
        while (atomic_load(&serving) != mine)
            ;
        for (int k = 0; k < 100000; k++)
            shared = shared * 0.999 + k;
        atomic_store(&serving, mine + 1);
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, work, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    printf("%g\n", shared);
    return 0;
}
