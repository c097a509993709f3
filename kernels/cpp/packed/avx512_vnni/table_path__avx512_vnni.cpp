// The AVX-512-VNNI path is its table.
#include "../path.h"
#include "table__avx512_vnni.h"

namespace moe {
namespace packed {

const moe_microkernels &path_microkernels() { return kVnniMicrokernels; }

void describe_fallback(moe_info *) {}

} // namespace packed
} // namespace moe
