// ime: the way of `packed` over tiles of SpacemiT's integer matrix extension.
#include "packed/packed_plan.h"
#include "variant.h"

MOE_REGISTER_VARIANT("ime", moe::packed::make_packed_plan)
