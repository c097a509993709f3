// rvv: the way of `packed` over microkernels of RISC-V vectors 1.0.
#include "packed/packed_plan.h"
#include "variant.h"

MOE_REGISTER_VARIANT("rvv", moe::packed::make_packed_plan)
