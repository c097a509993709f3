// The threads behind a plan of the C API, for the native driver: it marks its region on each of them.
#pragma once

#include "moe_prof.h"

namespace moe {

// Calls action once on each thread that works in the plan's forwards; not during a forward.
void on_each_thread(moe_plan *plan, void (*action)());

} // namespace moe
