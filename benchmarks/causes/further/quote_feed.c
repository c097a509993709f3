// Planted: spin_bound. A paced feed: the publisher polls the clock (rdtsc-based vDSO call) until
// each quote is due, the subscriber polls the sequence flag; both burn a CPU each on polling.
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

enum { QUOTES = 50000, GAP_NS = 50000, SLOTS = 256 };
static uint64_t ring[SLOTS];
static _Alignas(64) atomic_long published;
static _Alignas(64) atomic_long consumed;

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void *publisher(void *arg)
{
    (void)arg;
    int64_t due = now_ns();
    uint64_t price = 10000;
    for (long q = 0; q < QUOTES; q++) {
        due += GAP_NS;
        while (now_ns() < due)
            ;
        while (q - atomic_load_explicit(&consumed, memory_order_acquire) >= SLOTS)
            ;
        price = price * 6364136223846793005ull + 1442695040888963407ull;
        ring[q % SLOTS] = price >> 40;
        atomic_store_explicit(&published, q + 1, memory_order_release);
    }
    return NULL;
}

int main(void)
{
    pthread_t th;
    if (pthread_create(&th, NULL, publisher, NULL)) return 1;
    uint64_t sum = 0;
    for (long q = 0; q < QUOTES; q++) {
        while (atomic_load_explicit(&published, memory_order_acquire) <= q)
            ;
        sum = sum * 31 + ring[q % SLOTS];
        atomic_store_explicit(&consumed, q + 1, memory_order_release);
    }
    pthread_join(th, NULL);
    printf("checksum %llu\n", (unsigned long long)sum);
    return 0;
}
