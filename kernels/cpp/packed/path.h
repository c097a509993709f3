// The microkernels of the instruction-set path that this library was linked with: the build puts
// exactly one folder of them (avx2/, ...) beside the driver.
#pragma once

#include "microkernels.h"

namespace moe {
namespace packed {

const moe_microkernels &path_microkernels();

} // namespace packed
} // namespace moe
