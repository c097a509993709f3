// Planted: page_fault_bound. Snapshot by fork: each child rewrites one word in every page of a 128
// MiB store it shares copy-on-write with the parent, so the time is copy-on-write page faults.
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
    const size_t bytes = 128u << 20;
    uint64_t *store = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (store == MAP_FAILED) return 1;
    madvise(store, bytes, MADV_NOHUGEPAGE);
    for (size_t i = 0; i < bytes / 8; i += 512) store[i] = i * 2654435761u;
    uint64_t sum = 0;
    for (int snap = 0; snap < 28; snap++) {
        int p[2];
        if (pipe(p)) return 1;
        pid_t pid = fork();
        if (pid < 0) return 1;
        if (pid == 0) {
            uint64_t s = (uint64_t)snap;
            for (size_t i = 0; i < bytes / 8; i += 512) { store[i] += s; s ^= store[i]; }
            if (write(p[1], &s, sizeof s) != (ssize_t)sizeof s) _exit(1);
            _exit(0);
        }
        close(p[1]);
        uint64_t s = 0;
        if (read(p[0], &s, sizeof s) != (ssize_t)sizeof s) return 1;
        close(p[0]);
        waitpid(pid, NULL, 0);
        sum = sum * 31 + s;
    }
    printf("checksum %llx\n", (unsigned long long)sum);
    return 0;
}
