/* Planted: spin_bound, serial_bound. Four threads queue for one mutex that protects all work. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static uint64_t shared = 1;

static void *work(void *unused) {
    (void)unused;
    for (int i = 0; i < 400000; ++i) {
        pthread_mutex_lock(&gate);
        for (int j = 0; j < 100; ++j) {
            shared = shared * 6364136223846793005ULL + 1442695040888963407ULL;
        }
        pthread_mutex_unlock(&gate);
    }
    return NULL;
}

int main(void) {
    pthread_t team[4];
    for (int i = 0; i < 4; ++i) {
        pthread_create(&team[i], NULL, work, NULL);
    }
    for (int i = 0; i < 4; ++i) {
        pthread_join(team[i], NULL);
    }
    printf("%llu\n", (unsigned long long)shared);
    return 0;
}
