// scalar: the baseline of every speedup; the build compiles this file at -O2 without vectorizer.
#include "reference_plan.h"

MOE_REGISTER_VARIANT("scalar", moe::make_reference_plan)
