// The part of the ITT interface that pausing and resuming need. A program states which calls it
// would make (name, where the address goes) in a table and hands it to the collector's
// __itt_api_init, which fills it in; collectors without that function export the calls themselves.
//
// Source: Intel ITT API, documented structures of ittnotify_config.h (__itt_global, __itt_api_info)
// and the environment variables of "Configuring Your Build System" in VTune's user guide.
#include "itt.h"

#include <cstdlib>

#ifndef MOE_STATIC_DRIVER
#include <dlfcn.h>
#include <pthread.h>
#endif

namespace bench {

#ifndef MOE_STATIC_DRIVER
namespace {

using Call = void (*)();

constexpr int kAllGroups = 0x7FFFFFFF;
constexpr const char *kVariable =
    sizeof(void *) == 8 ? "INTEL_LIBITTNOTIFY64" : "INTEL_LIBITTNOTIFY32";

struct ApiInfo {
    const char *name;
    void **address;
    void *init_function;
    void *null_function;
    int group;
};

// What the collector is given. It may keep the pointer and use the tail, so there is one for the
// whole run, with room for fields of later versions.
struct Global {
    unsigned char magic[8];
    unsigned long version_major, version_minor, version_build;
    volatile long api_initialized, mutex_initialized, atomic_counter;
    pthread_mutex_t mutex;
    void *library;
    void *error_handler;
    const char **library_path;
    ApiInfo *calls;
    Global *next;
    void *lists[3]; // threads, domains, strings
    int state;
    void *later[32];
};

void *resume_address = nullptr;
void *pause_address = nullptr;

void do_nothing() {}

ApiInfo calls[] = {
    {"__itt_pause", &pause_address, nullptr, reinterpret_cast<void *>(do_nothing), kAllGroups},
    {"__itt_resume", &resume_address, nullptr, reinterpret_cast<void *>(do_nothing), kAllGroups},
    {nullptr, nullptr, nullptr, nullptr, 0},
};

Global global = {{0xED, 0xAB, 0xAB, 0xEC, 0x0D, 0xEE, 0xDA, 0x30},
                 3, 0, 0, 0, 0, 0, PTHREAD_MUTEX_INITIALIZER,
                 nullptr, nullptr, nullptr, calls, nullptr, {}, 0, {}};

std::string last_error() {
    const char *text = dlerror();
    return text == nullptr ? "unknown error" : text;
}

} // namespace

std::string IttCollector::connect() {
    const char *name = std::getenv(kVariable);
    if (name == nullptr || *name == '\0') {
        return "";
    }
    void *library = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
    if (library == nullptr) {
        return std::string(kVariable) + ": cannot load the collector: " + last_error();
    }
    global.library = library;
    using Init = void (*)(Global *, int);
    if (const auto init = reinterpret_cast<Init>(dlsym(library, "__itt_api_init"))) {
        init(&global, kAllGroups);
        global.api_initialized = 1;
    }
    for (ApiInfo *call = calls; call->name != nullptr; ++call) {
        if (*call->address == nullptr) {
            *call->address = dlsym(library, call->name);
        }
        if (*call->address == nullptr) {
            return std::string(kVariable) + ": " + name + " has no " + call->name;
        }
    }
    resume_ = reinterpret_cast<Call>(resume_address);
    pause_ = reinterpret_cast<Call>(pause_address);
    return "";
}
#else
std::string IttCollector::connect() { return ""; }
#endif

void IttCollector::resume() const {
    if (resume_ != nullptr) {
        resume_();
    }
}

void IttCollector::pause() const {
    if (pause_ != nullptr) {
        pause_();
    }
}

} // namespace bench
