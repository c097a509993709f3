// The microkernels of the instruction-set path that this library was linked with: the build puts
// exactly one folder of them (avx2/, ...) beside the driver.
#pragma once

#include "microkernels.h"
#include "moe_prof.h"

namespace moe {
namespace packed {

const moe_microkernels &path_microkernels();

// Where the path had to give up its own microkernels for another's: that path's name to isa, the
// reason to note. Else nothing.
void describe_fallback(moe_info *info);

} // namespace packed
} // namespace moe
