// Whether this CPU can run an instruction-set path.
#pragma once

#include <string>

namespace bench {

// The first feature that the CPU lacks for the path; empty when it has all of them.
inline std::string missing_feature(const std::string &isa) {
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (isa == "avx2") {
        if (!__builtin_cpu_supports("avx2")) {
            return "avx2";
        }
        if (!__builtin_cpu_supports("fma")) {
            return "fma";
        }
        if (!__builtin_cpu_supports("bmi2")) {
            return "bmi2";
        }
    }
#else
    if (isa == "avx2") {
        return "an x86_64 CPU";
    }
#endif
    return "";
}

} // namespace bench
