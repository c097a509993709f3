/* Planted: dram_latency_bound. A shuffled linked list of a quarter of a gigabyte. */
/* Arguments: 4194304 6000000 */
#include "list.h"
