// rvv-dispatched: the way of `dispatched` over microkernels of RISC-V vectors 1.0.
#include "packed/dispatched_plan.h"
#include "variant.h"

MOE_REGISTER_VARIANT("rvv-dispatched", moe::packed::make_dispatched_plan)
