// What a kernel variant is inside the library: a Plan class and one registration line.
//
// A variant's source file defines a class derived from moe::Plan, a function that makes one, and
//     MOE_REGISTER_VARIANT("name", make_plan)
// at namespace scope. plan.cpp turns that into the C API of include/moe_prof.h.
//
// Every routine with a loop in the headers of this folder has internal linkage (static or an unnamed
// namespace), so that each object file keeps the code its own flags produced: the linker can never
// replace the unvectorized baseline's routines by another file's.
#pragma once

#include <cstdint>
#include <memory>

#include "aligned_array.h"
#include "moe_prof.h"
#include "phase_timer.h"

namespace moe {

// Largest D and H: 127 * 128 times this is the largest int32 sum that cannot overflow.
constexpr int32_t kMaxReduction = INT32_MAX / (127 * 128);

class Plan {
public:
    // threads: how many the plan really uses, 1 for a variant that is serial by nature.
    Plan(const moe_weights &weights, const moe_options &options, int32_t threads);
    virtual ~Plan();
    Plan(const Plan &) = delete;
    Plan &operator=(const Plan &) = delete;

    // x, y: (n, D) f32, 0 < n <= max_tokens. Fills ids and gates too. Must not allocate or throw.
    virtual void forward(const float *x, float *y, int64_t n) noexcept = 0;

    // Fills what only the variant knows (microkernel, note, mr/nr/kr, weight and workspace bytes,
    // threads that really came); the caller has set the rest and zeroed these.
    virtual void describe(moe_info *info) const = 0;

    // Name of the way that a forward of n tokens takes; "" where there is only one.
    virtual const char *path(int64_t n) const;

    // Calls action once on each thread that works in forwards; the default is OpenMP's team.
    virtual void on_each_thread(void (*action)());

    const moe_weights weights;
    const int32_t max_tokens;
    const int32_t threads;
    const bool pin;

    AlignedArray<int32_t> ids;   // (max_tokens, K): experts in the order in which they are summed
    AlignedArray<float> gates;   // (max_tokens, K)
    PhaseTimers timers;
};

using MakePlan = std::unique_ptr<Plan> (*)(const moe_weights &, const moe_options &);

// One entry of the library's table; objects have static storage and link themselves in.
struct Variant {
    Variant(const char *variant_name, const char *isa_name, MakePlan make_plan);

    const char *name;
    const char *isa;
    MakePlan make;
    const Variant *next;
};

const Variant *first_variant();
const Variant *find_variant(const char *name); // nullptr: unknown; name nullptr: the first

// Bytes of weights in the caller's layout: what a forward of an unpacked variant can touch.
int64_t unpacked_weight_bytes(const moe_weights &weights);

} // namespace moe

#ifndef MOE_ISA_NAME
#error "MOE_ISA_NAME must be set by the build: portable, avx2, native, ..."
#endif

#define MOE_REGISTER_VARIANT(name, make_plan)                                                      \
    namespace {                                                                                    \
    ::moe::Variant moe_registered_variant{name, MOE_ISA_NAME, make_plan};                    \
    }
