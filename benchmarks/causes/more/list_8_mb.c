/* Planted: l3_bound. A shuffled linked list of eight megabytes. */
/* Build: -O2 -static -s */
/* Arguments: 131072 15000000 */
#include "list.h"
