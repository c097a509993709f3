/* Pointer chase through 512 KiB: in the L2 of current cores. */
#include "chase.h"

int main(void) {
    printf("%p\n", chase(512u << 10, 150000000L));
    return 0;
}
