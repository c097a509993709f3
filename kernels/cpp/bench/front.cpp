// moe_bench: chooses the best instruction-set path that this CPU has and that holds the variant
// asked for, and becomes that path's driver (moe_bench-<isa> beside it).
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <unistd.h>
#include <vector>

#include "cpu_check.h"
#include "options.h"

namespace {

struct Path {
    std::string isa;
    std::vector<std::string> variants; // in stage order
};

std::vector<std::string> split(const std::string &text, char separator) {
    std::vector<std::string> parts;
    std::string::size_type begin = 0;
    while (begin <= text.size()) {
        std::string::size_type end = text.find(separator, begin);
        end = end == std::string::npos ? text.size() : end;
        parts.push_back(text.substr(begin, end - begin));
        begin = end + 1;
    }
    return parts;
}

// MOE_BENCH_PATHS, set by the build: "native:autovec,openmp/avx2:autovec,...", best path first.
std::vector<Path> built_paths() {
    std::vector<Path> paths;
    for (const std::string &text : split(MOE_BENCH_PATHS, '/')) {
        const std::vector<std::string> parts = split(text, ':');
        paths.push_back({parts[0], split(parts[1], ',')});
    }
    return paths;
}

bool has_variant(const Path &path, const std::string &variant) {
    for (const std::string &name : path.variants) {
        if (name == variant) {
            return true;
        }
    }
    return false;
}

// The stage that comes last in the best path that has one of its own; in the baseline path, which is
// the last one built, when no path has.
std::string last_stage(const std::vector<Path> &paths, const Path &baseline) {
    for (const Path &path : paths) {
        if (!has_variant(baseline, path.variants.back())) {
            return path.variants.back();
        }
    }
    return paths.front().variants.back();
}

// What this CPU lacks for the paths that have the variant, of those wished; empty when none has it.
std::string lacking_for(const std::string &variant, const std::string &isa) {
    std::string why;
    for (const Path &path : built_paths()) {
        const std::string lacking = bench::missing_feature(path.isa);
        if (!lacking.empty() && has_variant(path, variant) && (isa.empty() || isa == path.isa)) {
            why += (why.empty() ? "for path " : "; for path ") + path.isa + " this CPU lacks " + lacking;
        }
    }
    return why;
}

int fail(const std::string &text) {
    std::fprintf(stderr, "moe_bench: %s\n", text.c_str());
    return 2;
}

std::string own_folder() {
    char path[4096];
    const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    if (length <= 0) {
        return ".";
    }
    const std::string name(path, static_cast<std::size_t>(length));
    return name.substr(0, name.rfind('/'));
}

} // namespace

int main(int argc, char **argv) {
    bench::Options options;
    const std::string problem = bench::parse_options(argc, argv, &options);
    if (!problem.empty()) {
        return fail(problem);
    }
    if (options.help) {
        std::fputs(bench::kUsage, stdout);
        return 0;
    }
    if (options.isa.empty() && std::getenv("MOE_PROF_ISA") != nullptr) {
        options.isa = std::getenv("MOE_PROF_ISA");
    }
    std::vector<Path> usable;
    std::string names;
    for (const Path &path : built_paths()) {
        const std::string lacking = bench::missing_feature(path.isa);
        if (path.isa == options.isa && !lacking.empty()) {
            return fail("path " + path.isa + " cannot run: this CPU lacks " + lacking);
        }
        if (lacking.empty()) {
            usable.push_back(path);
            names += (names.empty() ? "" : ", ") + path.isa;
        }
    }
    std::vector<Path> wished;
    for (const Path &path : usable) {
        if (options.isa.empty() || path.isa == options.isa) {
            wished.push_back(path);
        }
    }
    if (wished.empty()) {
        return fail("unknown path '" + options.isa + "'; paths that run here: " + names);
    }
    if (!options.library.empty()) { // its code chooses for itself: any path's driver can run it
        wished = {usable.back()};
        options.variant = wished.back().variants.back();
    }
    const std::string variant = options.variant.empty() ? last_stage(wished, built_paths().back()) : options.variant;
    for (const Path &path : wished) {
        if (has_variant(path, variant)) {
            const std::string driver = own_folder() + "/moe_bench-" + path.isa;
            argv[0] = const_cast<char *>(driver.c_str());
            execv(driver.c_str(), argv);
            std::fprintf(stderr, "moe_bench: cannot run %s: %s%s\n", driver.c_str(),
                         std::strerror(errno),
                         errno == ENOEXEC ? "; under an emulator name it instead of moe_bench" : "");
            return 1;
        }
    }
    const std::string why = lacking_for(variant, options.isa);
    if (!why.empty()) {
        return fail("variant '" + variant + "' cannot run: " + why);
    }
    return fail("unknown variant '" + variant + "' in paths: " + names);
}
