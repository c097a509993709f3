// dispatched: the kernels and weights of `packed`, and a path chosen by shape and threads.
#include "packed/dispatched_plan.h"
#include "variant.h"

MOE_REGISTER_VARIANT("dispatched", moe::packed::make_dispatched_plan)
