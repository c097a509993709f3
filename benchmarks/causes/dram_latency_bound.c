/* Pointer chase through 256 MiB: in main memory. */
#include "chase.h"

int main(void) {
    printf("%p\n", chase(256u << 20, 5000000L));
    return 0;
}
