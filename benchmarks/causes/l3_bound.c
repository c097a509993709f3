/* Pointer chase through 8 MiB: in the L3, beyond the L2. */
#include "chase.h"

int main(void) {
    printf("%p\n", chase(8u << 20, 15000000L));
    return 0;
}
