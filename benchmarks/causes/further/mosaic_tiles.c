// Planted: oversubscribed. One compute-only thread a tile, 48 a CPU, all runnable at the same time
// on the few CPUs: each waits in the run queue for nearly all of its life.
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

enum { MAXT = 768, SIDE = 48 };
static uint64_t result[MAXT][8];
static long rounds;
static pthread_barrier_t gate;

static void *render(void *arg)
{
    long id = (long)arg;
    uint32_t px[SIDE * SIDE];
    for (int i = 0; i < SIDE * SIDE; i++) px[i] = (uint32_t)(id * 7919 + i * 31);
    pthread_barrier_wait(&gate);
    for (long r = 0; r < rounds; r++)
        for (int i = 0; i < SIDE * SIDE; i++) {
            uint32_t v = px[i];
            px[i] = ((v >> 1) & 0x7f7f7f7fu) + ((v << 3) ^ (v >> 5)) + (uint32_t)r;
        }
    uint64_t s = 0;
    for (int i = 0; i < SIDE * SIDE; i++) s = s * 31 + px[i];
    result[id][0] = s;
    return NULL;
}

int main(void)
{
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    long team = 48 * (cpus < 1 ? 1 : cpus);
    if (team > MAXT) team = MAXT;
    rounds = 6500000 / 96 * cpus * 48 / team;
    pthread_barrier_init(&gate, NULL, (unsigned)team);
    pthread_t th[MAXT];
    for (long i = 0; i < team; i++)
        if (pthread_create(&th[i], NULL, render, (void *)i)) return 1;
    uint64_t sum = 0;
    for (long i = 0; i < team; i++) {
        pthread_join(th[i], NULL);
        sum = sum * 31 + result[i][0];
    }
    printf("checksum %llx\n", (unsigned long long)sum);
    return 0;
}
