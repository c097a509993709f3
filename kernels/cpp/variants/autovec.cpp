// autovec: the source of `scalar` at -O3 with the instruction-set path's flags.
#include "reference_plan.h"

MOE_REGISTER_VARIANT("autovec", moe::make_reference_plan)
