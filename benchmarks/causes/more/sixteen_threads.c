/* Planted: oversubscribed. Sixteen threads that compute, whatever the number of CPUs below it. */
#include <pthread.h>
#include <stdio.h>

#define THREADS 16

static void *collatz(void *argument)
{
    long base = *(long *)argument, longest = 0;
    for (long start = base; start < base + 400000; start++) {
        long n = start, steps = 0;
        while (n > 1) {
            n = n & 1 ? 3 * n + 1 : n / 2;
            steps++;
        }
        if (steps > longest)
            longest = steps;
    }
    *(long *)argument = longest;
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    long values[THREADS], longest = 0;
    for (int i = 0; i < THREADS; i++) {
        values[i] = 1 + i * 400000L;
        pthread_create(&threads[i], NULL, collatz, &values[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        if (values[i] > longest)
            longest = values[i];
    }
    printf("%ld\n", longest);
    return 0;
}
