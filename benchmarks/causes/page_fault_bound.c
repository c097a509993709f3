/* Maps memory, touches each page once, gives it back. */
#include <stdio.h>
#include <sys/mman.h>

int main(void) {
    size_t size = 16u << 20;
    long sum = 0;
    for (int round = 0; round < 200; ++round) {
        char *data = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        madvise(data, size, MADV_NOHUGEPAGE);
        for (size_t i = 0; i < size; i += 4096) {
            data[i] = (char)i;
            sum += data[i];
        }
        munmap(data, size);
    }
    printf("%ld\n", sum);
    return 0;
}
