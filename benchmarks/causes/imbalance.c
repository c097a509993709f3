/* Two workers, one with five times the work of the other. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>

static void *work(void *count) {
    uint64_t x = 1;
    for (long i = 0; i < (long)(intptr_t)count; ++i) {
        x = x * 6364136223846793005ULL + 1;
    }
    return (void *)(uintptr_t)x;
}

int main(void) {
    pthread_t light, heavy;
    void *a, *b;
    pthread_create(&light, NULL, work, (void *)150000000L);
    pthread_create(&heavy, NULL, work, (void *)750000000L);
    pthread_join(light, &a);
    pthread_join(heavy, &b);
    printf("%p %p\n", a, b);
    return 0;
}
