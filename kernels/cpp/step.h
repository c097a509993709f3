// Marks a step of the forward that keeps its own name in profiles.
#pragma once

#define MOE_STEP __attribute__((noinline))
