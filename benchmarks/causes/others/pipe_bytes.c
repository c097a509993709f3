/* Planted: syscall_bound. Single bytes through a pipe. */
#include <stdio.h>
#include <unistd.h>

int main(void) {
    int ends[2];
    long sum = 0;
    char byte = 1;
    if (pipe(ends) != 0) {
        return 1;
    }
    for (long i = 0; i < 2500000L; ++i) {
        if (write(ends[1], &byte, 1) != 1 || read(ends[0], &byte, 1) != 1) {
            return 1;
        }
        sum += byte;
    }
    printf("%ld\n", sum);
    return 0;
}
