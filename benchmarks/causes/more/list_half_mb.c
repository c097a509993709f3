/* Planted: l2_bound. A shuffled linked list of half a megabyte. */
/* Arguments: 8192 200000000 */
#include "list.h"
