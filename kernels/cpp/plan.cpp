// The C API of include/moe_prof.h over the variants linked into this library.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <new>

#include "parallel.h"
#include "plan_threads.h"
#include "variant.h"

namespace moe {

// Appended to by static initializers, in link order; constant-initialized, so always ready.
static const Variant *g_first = nullptr;
static const Variant **g_end = &g_first;

Variant::Variant(const char *variant_name, const char *isa_name, MakePlan make_plan)
    : name(variant_name), isa(isa_name), make(make_plan), next(nullptr) {
    *g_end = this;
    g_end = &next;
}

const Variant *first_variant() { return g_first; }

const Variant *find_variant(const char *name) {
    const Variant *variant = g_first;
    while (name != nullptr && variant != nullptr && std::strcmp(variant->name, name) != 0) {
        variant = variant->next;
    }
    return variant;
}

Plan::Plan(const moe_weights &w, const moe_options &options, int32_t used_threads)
    : weights(w), max_tokens(options.max_tokens), threads(used_threads), pin(options.pin != 0),
      ids(static_cast<std::size_t>(options.max_tokens) * static_cast<std::size_t>(w.top_k)),
      gates(ids.size()), timers(used_threads) {}

Plan::~Plan() = default;

const char *Plan::path(int64_t) const { return ""; }

void Plan::on_each_thread(void (*action)()) {
    run_team(threads, [&](int32_t, int32_t) { action(); });
}

int64_t unpacked_weight_bytes(const moe_weights &w) {
    const int64_t stored = w.num_experts + w.has_shared;
    const int64_t router = (int64_t{w.d_model} + 1) * w.num_experts * 4;
    const int64_t scales = (2 * int64_t{w.d_ff} + w.d_model) * 4;
    return router + stored * (3 * int64_t{w.d_model} * w.d_ff + scales);
}

namespace {

int32_t check_weights(const moe_weights &w) {
    const bool pointers = w.router && w.bias && w.gate && w.up && w.down && w.gate_scale &&
                          w.up_scale && w.down_scale;
    if (!pointers || w.d_model < 1 || w.d_ff < 1 || w.num_experts < 1 || w.top_k < 1 ||
        w.top_k > w.num_experts) {
        return MOE_BAD_ARGUMENT;
    }
    if ((w.score != MOE_SCORE_SIGMOID && w.score != MOE_SCORE_SOFTMAX) || w.n_group < 1 ||
        w.num_experts % w.n_group != 0 || w.topk_group < 1 || w.topk_group > w.n_group ||
        int64_t{w.topk_group} * (w.num_experts / w.n_group) < w.top_k) {
        return MOE_BAD_ARGUMENT;
    }
    if (((w.has_shared | w.has_residual | w.raw_gates) & ~1) != 0) {
        return MOE_BAD_ARGUMENT;
    }
    return w.d_model > kMaxReduction || w.d_ff > kMaxReduction ? MOE_UNSUPPORTED : MOE_OK;
}

} // namespace
} // namespace moe

struct moe_plan {
    const moe::Variant *variant;
    std::unique_ptr<moe::Plan> plan;
    int32_t asked_threads;
    int64_t last_tokens; // of the last forward; -1 before the first
};

void moe::on_each_thread(moe_plan *plan, void (*action)()) { plan->plan->on_each_thread(action); }

int32_t moe_abi_version(void) { return MOE_ABI_VERSION; }

int32_t moe_variant_count(void) {
    int32_t count = 0;
    for (const moe::Variant *v = moe::first_variant(); v != nullptr; v = v->next) {
        ++count;
    }
    return count;
}

const char *moe_variant_name(int32_t index) {
    const moe::Variant *variant = index < 0 ? nullptr : moe::first_variant();
    while (variant != nullptr && index-- > 0) {
        variant = variant->next;
    }
    return variant == nullptr ? nullptr : variant->name;
}

const char *moe_status_text(int32_t status) {
    switch (status) {
    case MOE_OK:
        return "ok";
    case MOE_BAD_ARGUMENT:
        return "a size or pointer breaks the contract of moe_prof.h";
    case MOE_NO_MEMORY:
        return "not enough memory for the weights or the workspace";
    case MOE_UNSUPPORTED:
        return "this variant or build cannot do what is asked";
    case MOE_UNKNOWN_VARIANT:
        return "no variant of that name in this library";
    default:
        return "internal error";
    }
}

int32_t moe_plan_create(const moe_weights *weights, const moe_options *options, moe_plan **plan) {
    if (plan == nullptr) {
        return MOE_BAD_ARGUMENT;
    }
    *plan = nullptr;
    if (weights == nullptr || options == nullptr || options->threads < 1 ||
        options->max_tokens < 1) {
        return MOE_BAD_ARGUMENT;
    }
    const moe::Variant *variant = moe::find_variant(options->variant);
    if (variant == nullptr) {
        return MOE_UNKNOWN_VARIANT;
    }
    const int32_t status = moe::check_weights(*weights);
    if (status != MOE_OK) {
        return status;
    }
    try {
        *plan = new moe_plan{variant, variant->make(*weights, *options), options->threads, -1};
    } catch (const std::bad_alloc &) {
        return MOE_NO_MEMORY;
    }
    return MOE_OK;
}

int32_t moe_plan_forward(moe_plan *plan, const float *x, float *y, int64_t num_tokens) {
    if (plan == nullptr || num_tokens < 0 || (num_tokens > 0 && (x == nullptr || y == nullptr))) {
        return MOE_BAD_ARGUMENT;
    }
    moe::Plan &inner = *plan->plan;
    const int64_t d_model = inner.weights.d_model;
    inner.timers.forward_begin();
    for (int64_t t = 0; t < num_tokens; t += inner.max_tokens) {
        const int64_t slice = std::min<int64_t>(inner.max_tokens, num_tokens - t);
        inner.forward(x + t * d_model, y + t * d_model, slice);
    }
    inner.timers.forward_end();
    plan->last_tokens = num_tokens;
    return MOE_OK;
}

int32_t moe_plan_info(const moe_plan *plan, moe_info *info) {
    if (plan == nullptr || info == nullptr) {
        return MOE_BAD_ARGUMENT;
    }
    std::memset(info, 0, sizeof *info);
    std::snprintf(info->variant, sizeof info->variant, "%s", plan->variant->name);
    std::snprintf(info->isa, sizeof info->isa, "%s", plan->variant->isa);
    info->threads = plan->plan->threads;
    info->max_tokens = plan->plan->max_tokens;
    plan->plan->describe(info);
    if (info->note[0] == '\0' && info->threads < plan->asked_threads) {
        std::snprintf(info->note, sizeof info->note, "%d threads asked for, %d run: %s",
                      plan->asked_threads, info->threads, moe::thread_limit_reason());
    }
    return MOE_OK;
}

const char *moe_plan_path(const moe_plan *plan, int64_t num_tokens) {
    if (plan == nullptr || num_tokens < 1) {
        return nullptr;
    }
    return plan->plan->path(std::min<int64_t>(num_tokens, plan->plan->max_tokens));
}

void moe_plan_destroy(moe_plan *plan) { delete plan; }

int32_t moe_plan_routing(const moe_plan *plan, int32_t *ids, float *gates, int64_t num_tokens) {
    if (plan == nullptr || ids == nullptr || gates == nullptr || num_tokens < 0 ||
        num_tokens > plan->last_tokens || plan->last_tokens > plan->plan->max_tokens) {
        return MOE_BAD_ARGUMENT;
    }
    const std::size_t count = static_cast<std::size_t>(num_tokens) *
                              static_cast<std::size_t>(plan->plan->weights.top_k);
    std::copy_n(plan->plan->ids.data(), count, ids);
    std::copy_n(plan->plan->gates.data(), count, gates);
    return MOE_OK;
}

int32_t moe_plan_timers(moe_plan *plan, int32_t reset, int32_t threads, uint64_t *phase_ns,
                        uint64_t *busy_ns, uint64_t *wait_ns, uint64_t *wall_ns) {
    if (plan == nullptr || phase_ns == nullptr || busy_ns == nullptr || wait_ns == nullptr ||
        wall_ns == nullptr) {
        return MOE_BAD_ARGUMENT;
    }
    if (!moe::kHasPhaseTimers) {
        return MOE_UNSUPPORTED;
    }
    moe::PhaseTimers &timers = plan->plan->timers;
    if (threads < timers.threads()) {
        return MOE_BAD_ARGUMENT;
    }
    *wall_ns = timers.wall_ns();
    for (int32_t thread = 0; thread < timers.threads(); ++thread) {
        uint64_t busy = 0;
        for (int32_t phase = 0; phase < MOE_PHASE_COUNT; ++phase) {
            phase_ns[thread * MOE_PHASE_COUNT + phase] = timers.phase_ns(thread, phase);
            busy += timers.phase_ns(thread, phase);
        }
        busy_ns[thread] = std::min(busy, *wall_ns);
        wait_ns[thread] = *wall_ns - busy_ns[thread];
    }
    if (reset != 0) {
        timers.reset();
    }
    return MOE_OK;
}

int32_t moe_plan_spans(const moe_plan *plan, int32_t thread, moe_spans *spans) {
    if (plan == nullptr || spans == nullptr || spans->capacity < 0 || spans->phase == nullptr ||
        spans->begin_ns == nullptr || spans->end_ns == nullptr) {
        return MOE_BAD_ARGUMENT;
    }
#ifdef MOE_PHASES
    const moe::PhaseTimers &timers = plan->plan->timers;
    if (thread < 0 || thread >= timers.threads()) {
        return MOE_BAD_ARGUMENT;
    }
    spans->count = timers.spans(thread);
    spans->kept = std::min({spans->count, spans->capacity, moe::PhaseTimers::kMostSpans});
    spans->wall_ns = timers.last_ns();
    for (int64_t i = 0; i < spans->kept; ++i) {
        const moe::PhaseTimers::Span &span = timers.span(thread, i);
        spans->phase[i] = span.phase;
        spans->begin_ns[i] = span.begin_ns;
        spans->end_ns[i] = span.end_ns;
    }
    return MOE_OK;
#else
    (void)thread;
    return MOE_UNSUPPORTED;
#endif
}
