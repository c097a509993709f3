/* Planted: syscall_bound. Writes single bytes into a pipe and reads them back. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    long count = argc > 1 ? atol(argv[1]) : 2000000, sum = 0;
    int ends[2];
    if (pipe(ends))
        return 1;
    for (long i = 0; i < count; i++) {
        char out = (char)i, in = 0;
        if (write(ends[1], &out, 1) != 1 || read(ends[0], &in, 1) != 1)
            return 1;
        sum += in;
    }
    printf("%ld\n", sum);
    return 0;
}
