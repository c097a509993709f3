// The plan of the `packed` variant and of those that differ from it in microkernels alone.
#pragma once

#include "../variant.h"

namespace moe {
namespace packed {

// A plan over the microkernels of the path that this library was linked with.
std::unique_ptr<Plan> make_packed_plan(const moe_weights &w, const moe_options &options);

} // namespace packed
} // namespace moe
