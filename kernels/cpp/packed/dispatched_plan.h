// The plan of the `dispatched` variant: the same weights, a way through chosen by the shape.
#pragma once

#include "../variant.h"

namespace moe {
namespace packed {

// A plan over the microkernels of the path that this library was linked with.
std::unique_ptr<Plan> make_dispatched_plan(const moe_weights &w, const moe_options &options);

} // namespace packed
} // namespace moe
