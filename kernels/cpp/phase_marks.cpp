// The functions of phase_marks.h; unlike bodies, so that no compiler or linker makes them one.
#include "phase_marks.h"

#define MOE_DEFINE_MARK(name)                                                                      \
    void moe_phase_mark_##name(void) { asm volatile("# " #name ::: "memory"); }

extern "C" {
MOE_DEFINE_MARK(router)
MOE_DEFINE_MARK(quantize)
MOE_DEFINE_MARK(bucket)
MOE_DEFINE_MARK(gate_up)
MOE_DEFINE_MARK(activation)
MOE_DEFINE_MARK(down)
MOE_DEFINE_MARK(combine)
MOE_DEFINE_MARK(none)
}
