/* Reads one byte at a time. */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

int main(void) {
    int file = open("/dev/zero", O_RDONLY);
    long sum = 0;
    char byte;
    for (long i = 0; i < 6000000L; ++i) {
        sum += read(file, &byte, 1);
    }
    printf("%ld\n", sum);
    return 0;
}
