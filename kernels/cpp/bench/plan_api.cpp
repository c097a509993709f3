// Loading a user's library for the driver: by dlopen, its own symbols for itself.
#include "plan_api.h"

#ifndef MOE_STATIC_DRIVER
#include <dlfcn.h>
#endif

namespace bench {

PlanApi built_in_api() {
    return {moe_variant_count, moe_variant_name, moe_status_text, moe_plan_create, moe_plan_forward,
            moe_plan_info,     moe_plan_destroy, moe_plan_path,   true};
}

#ifndef MOE_STATIC_DRIVER
namespace {

std::string last_error() {
    const char *text = dlerror();
    return text == nullptr ? "unknown error" : text;
}

template <class Function> void find(void *handle, const char *name, Function *function) {
    *function = reinterpret_cast<Function>(dlsym(handle, name));
}

} // namespace

std::string load_api(const std::string &library, PlanApi *api) {
    void *handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
        return "--library: " + last_error();
    }
    decltype(&moe_abi_version) version = nullptr;
    PlanApi found{};
    find(handle, "moe_abi_version", &version);
    find(handle, "moe_variant_count", &found.variant_count);
    find(handle, "moe_variant_name", &found.variant_name);
    find(handle, "moe_status_text", &found.status_text);
    find(handle, "moe_plan_create", &found.create);
    find(handle, "moe_plan_forward", &found.forward);
    find(handle, "moe_plan_info", &found.info);
    find(handle, "moe_plan_destroy", &found.destroy);
    find(handle, "moe_plan_path", &found.path);
    if (version == nullptr || found.variant_count == nullptr || found.variant_name == nullptr ||
        found.status_text == nullptr || found.create == nullptr || found.forward == nullptr ||
        found.info == nullptr || found.destroy == nullptr) {
        return "--library: " + library + " lacks functions of moe_prof.h";
    }
    if (version() != MOE_ABI_VERSION) {
        return "--library: " + library + " has plan API version " + std::to_string(version()) +
               ", this driver " + std::to_string(MOE_ABI_VERSION);
    }
    *api = found;
    return "";
}
#else
std::string load_api(const std::string &library, PlanApi *) {
    return "--library: " + library + " cannot be loaded: this driver is a static program";
}
#endif

} // namespace bench
