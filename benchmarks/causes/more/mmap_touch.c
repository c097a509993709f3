/* Planted: page_fault_bound. Maps memory, touches each page once, unmaps it. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 40;
    size_t size = 64u << 20, page = (size_t)sysconf(_SC_PAGESIZE);
    long sum = 0;
    for (int r = 0; r < rounds; r++) {
        char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p == MAP_FAILED)
            return 1;
        madvise(p, size, MADV_NOHUGEPAGE);
        for (size_t i = 0; i < size; i += page)
            p[i] = (char)(i + r);
        sum += p[size / 2];
        munmap(p, size);
    }
    printf("%ld\n", sum);
    return 0;
}
