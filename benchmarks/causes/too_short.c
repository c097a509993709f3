/* Ends at once. */
#include <stdio.h>

int main(void) {
    volatile long sum = 0;
    for (int i = 0; i < 100000; ++i) {
        sum += i;
    }
    printf("%ld\n", sum);
    return 0;
}
