// The plan API that a driver runs: its own path's, or that of a user's library.
#pragma once

#include <string>

#include "moe_prof.h"

namespace bench {

struct PlanApi {
    decltype(&moe_variant_count) variant_count;
    decltype(&moe_variant_name) variant_name;
    decltype(&moe_status_text) status_text;
    decltype(&moe_plan_create) create;
    decltype(&moe_plan_forward) forward;
    decltype(&moe_plan_info) info;
    decltype(&moe_plan_destroy) destroy;
    decltype(&moe_plan_path) path; // may be nullptr: it is optional
    bool own;                      // built in: the threads behind its plans are known
};

PlanApi built_in_api();

// That of a shared library, which stays loaded. Fills *api; returns an empty string, or one line
// that says why it cannot be used.
std::string load_api(const std::string &library, PlanApi *api);

} // namespace bench
