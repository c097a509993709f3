/* The plan API of moe_prof: how a W8A8 Mixture-of-Experts kernel is prepared, run and asked about.
 *
 * The built-in kernels export these functions from one shared library per instruction-set path
 * (libmoe_portable.so, libmoe_avx2.so, ...); a kernel of your own that exports them can be measured
 * in the same way. Plain C, all sizes in elements, no exceptions cross the boundary, every function
 * returns a status. A plan is used by one caller at a time; different plans are independent.
 *
 * Symbols: N tokens, D d_model, H d_ff, E routed experts, S = 1 with a shared expert else 0,
 * K experts per token. All arrays are dense, row-major (C order).
 */
#ifndef MOE_PROF_H
#define MOE_PROF_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MOE_ABI_VERSION 2

#if defined(__GNUC__)
#define MOE_API __attribute__((visibility("default")))
#else
#define MOE_API
#endif

typedef enum moe_status {
    MOE_OK = 0,
    MOE_BAD_ARGUMENT = 1,     /* a size or pointer breaks the contract below */
    MOE_NO_MEMORY = 2,        /* weights or workspace could not be allocated */
    MOE_UNSUPPORTED = 3,      /* this variant or build cannot do what is asked */
    MOE_UNKNOWN_VARIANT = 4,  /* no variant of that name in this library */
    MOE_INTERNAL = 5
} moe_status;

typedef enum moe_score { MOE_SCORE_SIGMOID = 0, MOE_SCORE_SOFTMAX = 1 } moe_score;

/* The steps of a forward pass, in order. Indexes into the arrays of moe_plan_timers. */
typedef enum moe_phase {
    MOE_PHASE_ROUTER = 0,     /* scores, top-K choice, gates */
    MOE_PHASE_QUANTIZE = 1,   /* x to int8 */
    MOE_PHASE_BUCKET = 2,     /* counts, prefix sums, gathering tokens by expert */
    MOE_PHASE_GATE_UP = 3,    /* both int8 products of the first half */
    MOE_PHASE_ACTIVATION = 4, /* dequantize, SiLU(g) * u, requantize */
    MOE_PHASE_DOWN = 5,       /* int8 product of the second half */
    MOE_PHASE_COMBINE = 6,    /* residual + shared + gated sum in top-K order */
    MOE_PHASE_COUNT = 7
} moe_phase;

/* Weights, owned by the caller; they must outlive the plan. Expert index E is the shared one. */
typedef struct moe_weights {
    int32_t d_model;         /* D >= 1 */
    int32_t d_ff;            /* H >= 1 */
    int32_t num_experts;     /* E >= 1 */
    int32_t top_k;           /* 1 <= K <= E */
    const float *router;     /* (E, D) */
    const float *bias;       /* (E): added to the affinity for the choice only */
    const int8_t *gate;      /* (E + S, H, D), the whole int8 range */
    const int8_t *up;        /* (E + S, H, D) */
    const int8_t *down;      /* (E + S, D, H) */
    const float *gate_scale; /* (E + S, H), per output channel */
    const float *up_scale;   /* (E + S, H) */
    const float *down_scale; /* (E + S, D) */
    int32_t score;           /* moe_score */
    int32_t n_group;         /* routing groups; 1 = off; divides E */
    int32_t topk_group;      /* groups kept; 1 <= topk_group <= n_group */
    float routed_scaling_factor; /* multiplies every gate; 1 = off */
    int32_t has_shared;      /* 0 or 1 */
    int32_t has_residual;    /* 0 or 1: y starts from x */
    int32_t raw_gates;       /* 0: gates are divided by their sum over the chosen; 1: they are not */
} moe_weights;

typedef struct moe_options {
    const char *variant; /* NULL: the library's first */
    int32_t max_tokens;  /* workspace is made for this many; more are computed in slices */
    int32_t threads;     /* >= 1 */
    int32_t pin;         /* 1: bind thread i to the i-th allowed CPU */
} moe_options;

/* What really runs: the proof a report shows. Strings are NUL-terminated. */
typedef struct moe_info {
    char variant[32];
    char isa[32];         /* instruction-set path: portable, avx2, native, ... */
    char microkernel[64]; /* name of the inner kernel, "" when there is none */
    char note[160];       /* a fallback that was taken and why, or "" */
    int32_t threads;
    int32_t max_tokens;
    int32_t mr, nr, kr;   /* tile of the inner kernel; 0 when there is none */
    int64_t weight_bytes; /* bytes of weights that a forward can touch, as laid out by the plan */
    int64_t workspace_bytes;
} moe_info;

typedef struct moe_plan moe_plan;

MOE_API int32_t moe_abi_version(void);
MOE_API int32_t moe_variant_count(void);
MOE_API const char *moe_variant_name(int32_t index); /* NULL when out of range */
MOE_API const char *moe_status_text(int32_t status);

/* Checks the arguments, packs weights, allocates every workspace, starts threads. */
MOE_API int32_t moe_plan_create(const moe_weights *weights, const moe_options *options,
                                moe_plan **plan);
/* x: (num_tokens, D) finite f32; y: (num_tokens, D) f32, may not overlap x. num_tokens may be 0.
 * Allocates nothing. */
MOE_API int32_t moe_plan_forward(moe_plan *plan, const float *x, float *y, int64_t num_tokens);
MOE_API int32_t moe_plan_info(const moe_plan *plan, moe_info *info);
/* Optional, a library may lack it: the name of the way that a forward of num_tokens >= 1 takes where
 * a kernel chooses among several, "" where there is only one, NULL for wrong arguments. */
MOE_API const char *moe_plan_path(const moe_plan *plan, int64_t num_tokens);
MOE_API void moe_plan_destroy(moe_plan *plan);

/* The experts and gates of the last forward, for checks: ids (num_tokens, K) in the order in which
 * they are summed, gates (num_tokens, K). Only valid when the last forward had at most max_tokens
 * tokens; returns MOE_UNSUPPORTED where a library keeps no such record. */
MOE_API int32_t moe_plan_routing(const moe_plan *plan, int32_t *ids, float *gates,
                                 int64_t num_tokens);

/* Timers of the `phases` build, accumulated over forwards since the last reset:
 * phase_ns[thread * MOE_PHASE_COUNT + phase], busy_ns[thread], wait_ns[thread], *wall_ns.
 * busy + wait of a thread = wall. Returns MOE_UNSUPPORTED in other builds. */
MOE_API int32_t moe_plan_timers(moe_plan *plan, int32_t reset, int32_t threads, uint64_t *phase_ns,
                                uint64_t *busy_ns, uint64_t *wait_ns, uint64_t *wall_ns);
/* Optional, a library may lack it: what a thread did in the last forward, in the `phases` build. Step
 * i was phase[i] from begin_ns[i] to end_ns[i] after the forward's begin; between steps the thread
 * waited. Writes the first capacity steps; *count is how many there were, *kept how many were written,
 * *wall_ns the forward's time. Returns MOE_UNSUPPORTED in other builds. */
typedef struct moe_spans {
    int64_t capacity;
    int32_t *phase;
    uint64_t *begin_ns;
    uint64_t *end_ns;
    int64_t count;
    int64_t kept;
    uint64_t wall_ns;
} moe_spans;
MOE_API int32_t moe_plan_spans(const moe_plan *plan, int32_t thread, moe_spans *spans);

#ifdef __cplusplus
}
#endif
#endif
