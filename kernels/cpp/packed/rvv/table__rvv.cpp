// The row of the table of microkernels of RISC-V vectors.
#include "../path.h"
#include "table_kernels__rvv.h"

namespace moe {
namespace packed {
namespace {

constexpr moe_microkernels kTable = rvv_kernels();

} // namespace

const moe_microkernels &path_microkernels() { return kTable; }

void describe_fallback(moe_info *) {}

} // namespace packed
} // namespace moe
