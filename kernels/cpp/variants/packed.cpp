// packed: weights packed at prepare, exact int8 microkernels, several tokens per weight load.
#include "packed/packed_plan.h"
#include "variant.h"

MOE_REGISTER_VARIANT("packed", moe::packed::make_packed_plan)
