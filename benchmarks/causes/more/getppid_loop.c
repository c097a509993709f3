/* Planted: syscall_bound. Asks the kernel for the parent's number, millions of times. */
#include <stdio.h>
#include <unistd.h>

int main(void)
{
    long sum = 0;
    for (int i = 0; i < 8000000; i++)
        sum += getppid() & 1;
    printf("%ld\n", sum);
    return 0;
}
