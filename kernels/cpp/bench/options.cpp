// Parsing moe_bench's command line, and its usage text.
#include "options.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>

namespace bench {

const char *const kUsage =
    "usage: moe_bench N D H E K [iterations] [options]\n"
    "run one quantized Mixture-of-Experts layer: N tokens, D d_model, H d_ff, E experts, K top-k\n"
    "\n"
    "  iterations           timed forwards (default 1000)\n"
    "  --benchmark          skip the scalar baseline and the check against it\n"
    "  --variant NAME       kernel to run (default: the last stage that runs here)\n"
    "  --library FILE       take the kernel from a shared library with the plan API of moe_prof.h\n"
    "  --isa NAME           instruction-set path (default: the best; also MOE_PROF_ISA)\n"
    "  --threads T          threads (default: OMP_NUM_THREADS, else the usable CPUs)\n"
    "  --pin                bind thread i to the i-th allowed CPU\n"
    "  --seed S             seed of weights and tokens (default 0)\n"
    "  --score NAME         sigmoid (default) or softmax router scores\n"
    "  --groups G,KEPT      route within the best KEPT of G groups of experts (default: 1,1)\n"
    "  --scaling-factor F   multiply every gate (default 1)\n"
    "  --no-shared          no shared expert\n"
    "  --raw-gates          gates are not divided by their sum over the chosen\n"
    "  --no-residual        the output does not start from the input\n"
    "  --distinct-experts M experts e and e mod M share the memory of their matrices\n"
    "  --warmup W           forwards before the timed ones (default 1)\n"
    "  --uncounted-warmup   under callgrind: warm up without filling the simulated caches\n"
    "  --min-time SECONDS   repeat the iterations until at least so long (default 0)\n"
    "  --json               print one JSON line\n"
    "  --roi-fifo CTL,ACK   switch perf's counters on around the timed loop only\n"
    "  --dump-inputs FILE   write weights and tokens as raw bytes and exit\n"
    "  --list               print the variants of this path and exit\n"
    "example: moe_bench 128 256 128 16 4 2000 --benchmark --variant openmp --threads 2\n";

namespace {

constexpr int64_t kMaxDimension = int64_t{1} << 20;
constexpr int64_t kMaxTokens = int64_t{1} << 24;
constexpr int64_t kMaxReduction = INT32_MAX / (127 * 128);

bool to_integer(const char *text, int64_t *value) {
    char *end = nullptr;
    errno = 0;
    const long long parsed = std::strtoll(text, &end, 10);
    *value = parsed;
    return errno == 0 && end != text && *end == '\0';
}

bool to_seed(const char *text, uint64_t *value) {
    char *end = nullptr;
    errno = 0;
    const unsigned long long parsed = std::strtoull(text, &end, 10);
    *value = parsed;
    return errno == 0 && end != text && *end == '\0' && text[0] != '-';
}

bool to_seconds(const char *text, double *value) {
    char *end = nullptr;
    *value = std::strtod(text, &end);
    return end != text && *end == '\0' && std::isfinite(*value) && *value >= 0.0;
}

std::string check_size(const char *label, int64_t value, int64_t limit) {
    if (value >= 1 && value <= limit) {
        return "";
    }
    return std::string(label) + " = " + std::to_string(value) + " is not in 1.." +
           std::to_string(limit);
}

std::string check_shape(const int64_t (&sizes)[5], int64_t iterations) {
    const struct {
        const char *label;
        int64_t value;
        int64_t limit;
    } checks[] = {{"N", sizes[0], kMaxTokens},    {"D", sizes[1], kMaxReduction},
                  {"H", sizes[2], kMaxReduction}, {"E", sizes[3], kMaxDimension},
                  {"K", sizes[4], kMaxDimension}, {"iterations", iterations, INT64_MAX}};
    for (const auto &check : checks) {
        std::string problem = check_size(check.label, check.value, check.limit);
        if (!problem.empty()) {
            return problem;
        }
    }
    if (sizes[4] > sizes[3]) {
        return "K = " + std::to_string(sizes[4]) + " is larger than E = " +
               std::to_string(sizes[3]) + "; a token cannot choose more experts than there are";
    }
    return "";
}

bool to_groups(const char *text, Options *options) {
    const char *comma = std::strchr(text, ',');
    int64_t groups = 0, kept = 0;
    if (comma == nullptr || !to_integer(std::string(text, comma).c_str(), &groups) ||
        !to_integer(comma + 1, &kept) || groups < 1 || groups > kMaxDimension || kept < 1 ||
        kept > groups) {
        return false;
    }
    options->n_group = static_cast<int32_t>(groups);
    options->topk_group = static_cast<int32_t>(kept);
    return true;
}

// Options of the layer that take a value. Returns false for an unknown name; sets *good.
bool set_layer_value(const std::string &name, const char *text, Options *options, bool *good) {
    if (name == "--score") {
        options->softmax = std::strcmp(text, "softmax") == 0;
        *good = options->softmax || std::strcmp(text, "sigmoid") == 0;
    } else if (name == "--groups") {
        *good = to_groups(text, options);
    } else if (name == "--scaling-factor") {
        *good = to_seconds(text, &options->scaling_factor) && options->scaling_factor > 0.0;
    } else if (name == "--distinct-experts") {
        int64_t number = 0;
        *good = to_integer(text, &number) && number >= 1 && number <= kMaxDimension;
        options->distinct_experts = static_cast<int32_t>(number);
    } else {
        return false;
    }
    return true;
}

bool set_flag(const char *name, Options *options) {
    const struct {
        const char *name;
        bool *target;
    } flags[] = {{"--benchmark", &options->benchmark}, {"--json", &options->json},
                 {"--pin", &options->pin},             {"--list", &options->list},
                 {"--help", &options->help},           {"-h", &options->help},
        {"--no-shared", &options->no_shared}, {"--no-residual", &options->no_residual},
        {"--raw-gates", &options->raw_gates}, {"--uncounted-warmup", &options->uncounted_warmup}};
    for (const auto &flag : flags) {
        if (std::strcmp(name, flag.name) == 0) {
            *flag.target = true;
            return true;
        }
    }
    return false;
}

// Options that take a value. Returns false for an unknown name; sets *problem for a bad value.
bool set_value(const std::string &name, const char *text, Options *options, std::string *problem) {
    int64_t number = 0;
    bool good = true;
    if (name == "--variant") {
        options->variant = text;
    } else if (name == "--library") {
        options->library = text;
        good = *text != '\0';
    } else if (name == "--isa") {
        options->isa = text;
    } else if (name == "--dump-inputs") {
        options->dump_inputs = text;
    } else if (name == "--seed") {
        good = to_seed(text, &options->seed);
    } else if (name == "--min-time") {
        good = to_seconds(text, &options->min_time_s);
    } else if (name == "--threads") {
        good = to_integer(text, &number) && number >= 1 && number <= 1024;
        options->threads = static_cast<int32_t>(number);
    } else if (name == "--warmup") {
        good = to_integer(text, &options->warmup) && options->warmup >= 0;
    } else if (name == "--roi-fifo") {
        const char *comma = std::strchr(text, ',');
        good = comma != nullptr && comma != text && comma[1] != '\0';
        if (good) {
            options->control_fifo.assign(text, comma);
            options->ack_fifo = comma + 1;
        }
    } else if (!set_layer_value(name, text, options, &good)) {
        return false;
    }
    if (!good) {
        *problem = name + " " + text + ": not a valid value";
    }
    return true;
}

} // namespace

std::string parse_options(int argc, char **argv, Options *options) {
    int64_t numbers[6] = {0, 0, 0, 0, 0, options->iterations};
    int count = 0;
    for (int i = 1; i < argc; ++i) {
        const char *word = argv[i];
        if (set_flag(word, options)) {
            continue;
        }
        if (word[0] == '-' && word[1] == '-') {
            std::string problem;
            const bool has_value = i + 1 < argc;
            if (!set_value(word, has_value ? argv[i + 1] : "", options, &problem)) {
                return std::string("unknown option ") + word;
            }
            if (!has_value) {
                return std::string(word) + " needs a value";
            }
            if (!problem.empty()) {
                return problem;
            }
            ++i;
            continue;
        }
        if (count == 6) {
            return std::string("too many numbers at '") + word + "'; at most N D H E K iterations";
        }
        if (!to_integer(word, &numbers[count])) {
            return std::string("'") + word + "' is not a whole number";
        }
        ++count;
    }
    if (options->help || options->list) {
        return "";
    }
    if (count < 5) {
        return "five sizes are needed: N D H E K (moe_bench --help)";
    }
    const int64_t sizes[5] = {numbers[0], numbers[1], numbers[2], numbers[3], numbers[4]};
    const std::string problem = check_shape(sizes, numbers[5]);
    if (!problem.empty()) {
        return problem;
    }
    options->num_tokens = static_cast<int32_t>(sizes[0]);
    options->d_model = static_cast<int32_t>(sizes[1]);
    options->d_ff = static_cast<int32_t>(sizes[2]);
    options->num_experts = static_cast<int32_t>(sizes[3]);
    options->top_k = static_cast<int32_t>(sizes[4]);
    options->iterations = numbers[5];
    return "";
}

double required_bytes(const Options &o) {
    const double n = o.num_tokens;
    const double d = o.d_model;
    const double h = o.d_ff;
    const double e = o.num_experts;
    const double k = o.top_k;
    const double stored = e + (o.no_shared ? 0 : 1);
    const double matrices =
        o.distinct_experts == 0 ? stored : std::min<double>(stored, o.distinct_experts);
    const double weights = 4 * e * (d + 1) + 3 * matrices * d * h + 4 * stored * (2 * h + d);
    const double per_token = 12 * d + 12 * e + (k + 1) * (5 * d + 9 * h);
    return 2 * weights + n * per_token;
}

} // namespace bench
