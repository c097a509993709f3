// The command line of moe_bench.
#pragma once

#include <cstdint>
#include <string>

namespace bench {

struct Options {
    int32_t num_tokens = 0;
    int32_t d_model = 0;
    int32_t d_ff = 0;
    int32_t num_experts = 0;
    int32_t top_k = 0;
    bool softmax = false;
    int32_t n_group = 1;
    int32_t topk_group = 1;
    double scaling_factor = 1.0;
    bool no_shared = false;
    bool no_residual = false;
    bool raw_gates = false;
    int32_t distinct_experts = 0; // 0: every expert has matrices of its own
    int64_t iterations = 1000;
    int64_t warmup = 1;
    uint64_t seed = 0;
    double min_time_s = 0.0;
    int32_t threads = 0; // 0: as many as CPUs allowed
    std::string variant; // empty: the path's last stage
    std::string isa;     // empty: any
    std::string library; // empty: the driver's own variants
    std::string control_fifo;
    std::string ack_fifo;
    std::string dump_inputs;
    bool benchmark = false;
    bool uncounted_warmup = false;
    bool json = false;
    bool pin = false;
    bool list = false;
    bool help = false;
};

extern const char *const kUsage;

// Fills options; returns an empty string, or one line that says what is wrong.
std::string parse_options(int argc, char **argv, Options *options);

// Bytes for weights, a second (packed) copy, inputs, outputs and workspace, generously.
double required_bytes(const Options &options);

} // namespace bench
