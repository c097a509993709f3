// portable: the way of `packed` over microkernels of standard C++, bit-equal to `scalar`.
#include "packed/packed_plan.h"
#include "variant.h"

MOE_REGISTER_VARIANT("portable", moe::packed::make_packed_plan)
