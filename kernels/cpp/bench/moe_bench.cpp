// moe_bench-<isa>: runs one variant of one path on a seeded layer; the program that profilers are
// pointed at. Exit codes: 0 ok, 1 a file or fifo failed, 2 wrong arguments, 6 wrong result.
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <new>
#include <string>

#include "cpu_check.h"
#include "cpus.h"
#include "layer.h"
#include "options.h"
#include "plan_api.h"
#include "region.h"
#include "verify.h"

namespace bench {
namespace {

constexpr int32_t kWorkspaceTokens = 1024;
constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;

struct Failure {
    int exit_code;
    std::string text;
};

struct Timing {
    double seconds = 0.0;
    int64_t iterations = 0;
};

class PlanHandle {
public:
    // variant: empty for the library's first.
    PlanHandle(const PlanApi &api, const Layer &layer, const std::string &variant,
               const Options &options)
        : api_(api) {
        const int32_t tokens = options.num_tokens < kWorkspaceTokens ? options.num_tokens
                                                                     : kWorkspaceTokens;
        const moe_options plan_options{variant.empty() ? nullptr : variant.c_str(), tokens,
                                       options.threads, options.pin ? 1 : 0};
        const int32_t status = api_.create(&layer.weights(), &plan_options, &plan_);
        if (status == MOE_UNKNOWN_VARIANT) {
            const std::string where =
                api_.own ? "path " MOE_DRIVER_ISA " (moe_bench --list)" : options.library;
            throw Failure{2, "unknown variant '" + variant + "' in " + where};
        }
        check(status, "prepare " + variant);
        check(api_.info(plan_, &info_), "info " + variant);
        for (char *text : {info_.variant + sizeof info_.variant, info_.isa + sizeof info_.isa,
                           info_.microkernel + sizeof info_.microkernel,
                           info_.note + sizeof info_.note}) {
            text[-1] = '\0'; // whatever a library wrote
        }
    }
    ~PlanHandle() { api_.destroy(plan_); }
    PlanHandle(const PlanHandle &) = delete;
    PlanHandle &operator=(const PlanHandle &) = delete;

    const moe_info &info() const { return info_; }
    // For the region of interest: nullptr where the plan's threads are not known.
    moe_plan *known() const { return api_.own ? plan_ : nullptr; }
    const char *path(int64_t n) const {
        const char *name = api_.path == nullptr ? nullptr : api_.path(plan_, n);
        return name == nullptr ? "" : name;
    }

    void forward(const Layer &layer, float *y, int64_t n) {
        check(api_.forward(plan_, layer.tokens(), y, n), "forward");
    }

private:
    void check(int32_t status, const std::string &what) const {
        if (status != MOE_OK) {
            const char *text = api_.status_text(status);
            throw Failure{status == MOE_NO_MEMORY ? 2 : 1,
                          what + ": " + (text == nullptr ? "unknown status" : text)};
        }
    }

    const PlanApi api_;
    moe_plan *plan_ = nullptr;
    moe_info info_{};
};

void fail_if(const std::string &problem, int exit_code) {
    if (!problem.empty()) {
        throw Failure{exit_code, problem};
    }
}

int32_t default_threads() {
    const char *wish = std::getenv("OMP_NUM_THREADS");
    const int wished = wish == nullptr ? 0 : std::atoi(wish);
    if (wished >= 1) {
        return wished;
    }
    return moe::usable_cpus();
}

// Linux grants memory that it does not have; the check must come before the pages are touched.
void check_memory(const Options &options) {
    std::ifstream meminfo("/proc/meminfo");
    std::string key;
    double kib = 0.0;
    std::string unit;
    while (meminfo >> key >> kib && std::getline(meminfo, unit)) {
        if (key != "MemAvailable:") {
            continue;
        }
        const double needed = required_bytes(options);
        if (needed > kib * 1024.0) {
            char text[160];
            std::snprintf(text, sizeof text,
                          "these sizes need %.1f GiB of memory, %.1f GiB are available",
                          needed / kGiB, kib * 1024.0 / kGiB);
            throw Failure{2, text};
        }
    }
}

// The last stage that is no baseline.
std::string default_variant() {
    std::string name;
    for (int32_t i = 0; i < moe_variant_count(); ++i) {
        if (std::string("scalar") != moe_variant_name(i)) {
            name = moe_variant_name(i);
        }
    }
    return name;
}

// The timed loop: batches of options.iterations until min_time_s has passed.
Timing time_forwards(PlanHandle &plan, const Layer &layer, float *y, const Options &options) {
    using Clock = std::chrono::steady_clock;
    Timing timing;
    const Clock::time_point start = Clock::now();
    do {
        for (int64_t i = 0; i < options.iterations; ++i) {
            plan.forward(layer, y, options.num_tokens);
        }
        timing.iterations += options.iterations;
        timing.seconds = std::chrono::duration<double>(Clock::now() - start).count();
    } while (timing.seconds < options.min_time_s);
    return timing;
}

void warm_up(PlanHandle &plan, const Layer &layer, float *y, const Options &options) {
    for (int64_t i = 0; i < options.warmup; ++i) {
        plan.forward(layer, y, options.num_tokens);
    }
}

Timing run_baseline(const Layer &layer, float *y, Options options) {
    options.threads = 1;
    options.min_time_s = 0.0;
    PlanHandle plan(built_in_api(), layer, "scalar", options);
    warm_up(plan, layer, y, options);
    return time_forwards(plan, layer, y, options);
}

// A library's words between the quotation marks of JSON.
std::string quotable(const char *text) {
    std::string result;
    for (; *text != '\0'; ++text) {
        const bool plain = *text >= ' ' && *text <= '~' && *text != '"' && *text != '\\';
        result += plain ? *text : '?';
    }
    return result;
}

void print_json(const Options &o, const PlanHandle &plan, const Timing &timing, uint64_t checksum,
                const Timing *baseline, const Difference *difference) {
    const moe_info &info = plan.info();
    std::printf("{\"variant\": \"%s\", \"isa\": \"%s\", \"path\": \"%s\", "
                "\"microkernel\": \"%s\", \"note\": \"%s\", "
                "\"threads\": %d, \"shape\": [%d, %d, %d, %d, %d], \"seed\": %" PRIu64
                ", \"iterations\": %" PRId64 ", \"total_ns\": %.0f, \"ns_per_forward\": %.3f, "
                "\"checksum\": \"%016" PRIx64 "\"",
                quotable(info.variant).c_str(), quotable(info.isa).c_str(),
                quotable(plan.path(o.num_tokens)).c_str(), quotable(info.microkernel).c_str(),
                quotable(info.note).c_str(), info.threads, o.num_tokens, o.d_model, o.d_ff,
                o.num_experts, o.top_k, o.seed, timing.iterations, timing.seconds * 1e9,
                timing.seconds * 1e9 / static_cast<double>(timing.iterations), checksum);
    if (baseline != nullptr) {
        std::printf(", \"baseline_ns_per_forward\": %.3f, \"rel_rmse\": %g, \"worst_error\": %g, "
                    "\"worst_token\": %" PRId64 ", \"correct\": %s",
                    baseline->seconds * 1e9 / static_cast<double>(baseline->iterations),
                    std::isfinite(difference->rel_rmse) ? difference->rel_rmse : 1e308,
                    std::isfinite(difference->worst_error) ? difference->worst_error : 1e308,
                    difference->worst_token, acceptable(*difference) ? "true" : "false");
    }
    std::printf("}\n");
}

void print_text(const Timing &timing, const Timing *baseline, const Difference *difference) {
    if (baseline != nullptr) {
        std::printf("Baseline time:  %g s\n", baseline->seconds);
    }
    std::printf("Optimized time: %g s\n", timing.seconds);
    if (baseline == nullptr) {
        return;
    }
    const bool good = acceptable(*difference);
    std::printf("Result is %s (rel RMSE: %g, worst token: %g at %" PRId64 ")\n",
                good ? "correct!" : "WRONG!", difference->rel_rmse, difference->worst_error,
                difference->worst_token);
    if (good) { // per forward, since --min-time may have repeated the optimized loop
        std::printf("Speedup: %g\n",
                    baseline->seconds / static_cast<double>(baseline->iterations) /
                        (timing.seconds / static_cast<double>(timing.iterations)));
    }
}

int list_variants(const PlanApi &api) {
    for (int32_t i = 0; i < api.variant_count(); ++i) {
        const char *name = api.variant_name(i);
        std::printf("%s\n", name == nullptr ? "" : name);
    }
    return 0;
}

int run(int argc, char **argv) {
    Options options;
    fail_if(parse_options(argc, argv, &options), 2);
    if (options.help) {
        std::fputs(kUsage, stdout);
        return 0;
    }
    PlanApi api = built_in_api();
    if (!options.library.empty()) {
        fail_if(load_api(options.library, &api), 2);
    }
    if (options.list) {
        return list_variants(api);
    }
    if (!options.isa.empty() && options.isa != MOE_DRIVER_ISA) {
        throw Failure{2, "this driver is for path " MOE_DRIVER_ISA ", not " + options.isa};
    }
    check_memory(options);
    if (options.threads == 0) {
        options.threads = default_threads();
    }
    const std::string variant =
        options.variant.empty() && api.own ? default_variant() : options.variant;

    const Layer layer(options);
    if (!options.dump_inputs.empty()) {
        fail_if(layer.dump(options.dump_inputs), 1);
        return 0;
    }
    const int64_t size = int64_t{options.num_tokens} * options.d_model;
    moe::AlignedArray<float> y(static_cast<std::size_t>(size));
    y.zero();
    if (!options.json) {
        std::printf("problem size: num_tokens=%d d_model=%d d_ff=%d num_experts=%d top_k=%d "
                    "(%" PRId64 " iterations)\n",
                    options.num_tokens, options.d_model, options.d_ff, options.num_experts,
                    options.top_k, options.iterations);
        std::fflush(stdout);
    }

    Region region(options.control_fifo, options.ack_fifo);
    fail_if(region.connect(), 1); // before the baseline, which can take long
    Timing baseline;
    moe::AlignedArray<float> expected(options.benchmark ? 0 : static_cast<std::size_t>(size));
    if (!options.benchmark) {
        baseline = run_baseline(layer, expected.data(), options);
    }
    PlanHandle plan(api, layer, variant, options);
    if (!options.uncounted_warmup) {
        start_instrumentation();
    }
    warm_up(plan, layer, y.data(), options);
    if (options.uncounted_warmup) {
        start_instrumentation();
    }
    fail_if(region.begin(plan.known()), 1);
    const Timing timing = time_forwards(plan, layer, y.data(), options);
    fail_if(region.end(plan.known()), 1);

    Difference difference;
    if (!options.benchmark) {
        difference = compare(y.data(), expected.data(), options.num_tokens, options.d_model);
    }
    const Timing *base = options.benchmark ? nullptr : &baseline;
    if (options.json) {
        print_json(options, plan, timing, digest(y.data(), size), base, &difference);
    } else {
        print_text(timing, base, &difference);
    }
    return acceptable(difference) ? 0 : 6;
}

// A misspelt choice of the path ime would measure another kernel than the one that was meant.
void check_choices() {
    if (std::string(MOE_DRIVER_ISA) != "ime") {
        return;
    }
    for (const char *variable : {"MOE_IME_GATE_UP", "MOE_IME_DOWN"}) {
        const char *wish = std::getenv(variable);
        const std::string text = wish == nullptr ? "" : wish;
        if (!text.empty() && text != "ime" && text != "rvv") {
            throw Failure{2, std::string(variable) + "=" + text + ": choose ime or rvv"};
        }
    }
}

} // namespace
} // namespace bench

int main(int argc, char **argv) {
    const std::string lacking = bench::missing_feature(MOE_DRIVER_ISA);
    if (!lacking.empty()) {
        std::fprintf(stderr, "moe_bench: path " MOE_DRIVER_ISA " cannot run: this CPU lacks %s\n",
                     lacking.c_str());
        return 2;
    }
    try {
        bench::check_choices();
        return bench::run(argc, argv);
    } catch (const bench::Failure &failure) {
        std::fprintf(stderr, "moe_bench: %s\n", failure.text.c_str());
        return failure.exit_code;
    } catch (const std::bad_alloc &) {
        std::fprintf(stderr, "moe_bench: not enough memory for these sizes\n");
        return 2;
    }
}
