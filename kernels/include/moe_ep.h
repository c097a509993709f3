/* The compute core of the fused expert-parallel decode operator: what each rank does, over plain memory.
 *
 * libmoe_<isa>.so exports these functions beside the plan API, one library per instruction-set path.
 * Nothing here knows MPI: bytes move by stores into memory that the caller has mapped (windows), or,
 * for transports of their own, through the stage functions, which read and write where the caller says.
 *
 * P ranks, E experts, L = E / P experts a rank owns, B tokens of this rank, maxB the most of any rank,
 * k experts per token, h hidden size, n = width of the first product, m = n / 2. Expert e is the local
 * expert e mod L of rank e div L. "Cast" is rounding to bf16 or fp16, half to even.
 *
 * The maths, fp32 without contraction, in this order, on every path with the same bits:
 *   1  v = x (times smooth); a = max|v|; d = 127 / a; q = int8(rint(v * d)); s = 1 / d
 *   2  C = q . W1, int32
 *   3  y = (C * w1_scale) * s; z = (gate / (1 + exp(-gate))) * up, gate the left half of y
 *   4  a = max|z|; s2 = a * (1 / 127); q2 = int8(rint((z * 127) * (1 / a)))
 *   5  o = cast(((q2 . W2) * w2_scale) * s2)
 *   6  output = cast(sum over j ascending of o_j * expert_scale_j), multiply then add
 * A row whose a is 0, or so small that 127 / a or 1 / a is infinite, has q = 0 and scale 0.
 *
 * Sizes in elements unless named otherwise; arrays dense, row-major. Every function returns a moe_status
 * of moe_prof.h or one of the values below; none throws.
 */
#ifndef MOE_EP_H
#define MOE_EP_H

#include <stdint.h>

#include "moe_prof.h"

#ifdef __cplusplus
extern "C" {
#endif

#define MOE_EP_ABI_VERSION 1

enum {
    MOE_EP_TIMEOUT = 16,  /* a rank did not come in time: record->peer, record->stage */
    MOE_EP_ABORTED = 17,  /* a rank asked all to stop: record->peer */
    MOE_EP_MISMATCH = 18, /* a rank called with another setup: record->peer */
    MOE_EP_BUSY = 19      /* the engine already runs a call */
};

typedef enum moe_ep_dtype { MOE_EP_BF16 = 0, MOE_EP_FP16 = 1, MOE_EP_FP32 = 2 } moe_ep_dtype;

/* Where time and bytes go. Indexes into the arrays of moe_ep_record. */
typedef enum moe_ep_stage {
    MOE_EP_DISPATCH = 0,      /* expandIdx, quantize, place rows into the owners' windows */
    MOE_EP_WAIT_DISPATCH = 1, /* for rows of a source */
    MOE_EP_GATHER = 2,        /* received slots to the products' operand */
    MOE_EP_GMM1 = 3,          /* fused: with dequantize and SwiGLU in the epilogue */
    MOE_EP_SWIGLU = 4,        /* dequantize, SwiGLU, quantize; fused: quantize alone */
    MOE_EP_GMM2 = 5,          /* with dequantize, cast, and in the deep path the send */
    MOE_EP_SEND = 6,          /* rows from y2 into the sources' windows */
    MOE_EP_WAIT_COMBINE = 7,  /* for an owner's completion flag */
    MOE_EP_COMBINE = 8,       /* weighted sum */
    MOE_EP_SHARED = 9,        /* the shared expert, all of it */
    MOE_EP_STAGES = 10
} moe_ep_stage;

/* Bytes are counted by the code that moves them: through windows, workspace, weights, inputs and outputs
 * (memory), or through a thread's block of intermediates, which stays in its caches (cache). */
typedef enum moe_ep_traffic {
    MOE_EP_MEMORY_READ = 0,
    MOE_EP_MEMORY_WRITTEN = 1,
    MOE_EP_CACHE_READ = 2,
    MOE_EP_CACHE_WRITTEN = 3,
    MOE_EP_TRAFFICS = 4
} moe_ep_traffic;

typedef struct moe_ep_span {
    int32_t stage;    /* moe_ep_stage */
    int32_t expert;   /* local expert, L: the shared one, -1: none */
    int32_t thread;
    int32_t peer;     /* waits: rank waited for, else -1 */
    int64_t begin_ns; /* CLOCK_MONOTONIC: one time for all processes of a node */
    int64_t end_ns;
} moe_ep_span;

/* What a call did; the caller zeroes it and gives the arrays. Times and bytes are added to. */
typedef struct moe_ep_record {
    int64_t stage_ns[MOE_EP_STAGES]; /* summed over the team's threads */
    int64_t bytes[MOE_EP_STAGES][MOE_EP_TRAFFICS];
    int64_t total_ns;                /* wall, of the call */
    int32_t peer;                    /* after an error: the rank that is its cause, else -1 */
    int32_t stage;                   /* after an error: where this rank was, else -1 */
    int64_t *wait_ns;                /* (2, P): waits for dispatch, for combine, by rank waited for; or NULL */
    moe_ep_span *spans;              /* (span_capacity), or NULL: none wanted */
    int64_t span_capacity;
    int64_t span_count;              /* spans that there were, beyond the capacity too */
} moe_ep_record;

/* ---- engine: packed weights of the local experts and of the shared one, threads, their scratch ---- */

/* One expert's weights in the caller's arrays, read while the engine is made. */
typedef struct moe_ep_expert {
    const int8_t *gmm1;      /* (h, n): left half gate, right half up; the whole int8 range */
    const float *gmm1_scale; /* (n) */
    const int8_t *gmm2;      /* (n / 2, h) */
    const float *gmm2_scale; /* (h) */
} moe_ep_expert;

typedef struct moe_ep_setup {
    int32_t h, n, local_experts;
    const moe_ep_expert *experts; /* (local_experts) */
    int32_t n_shared;             /* 0: no shared expert */
    const moe_ep_expert *shared;
    int32_t threads, pin;         /* as in moe_options */
} moe_ep_setup;

typedef struct moe_ep_engine_info {
    char isa[32];
    char microkernel[64];
    char note[160];
    int32_t threads;
    int32_t mr, nr, block_rows;   /* tile of a product; rows of an expert that share a walk */
    int64_t weight_bytes;         /* packed */
    int64_t scratch_bytes;        /* of all threads: the cache-resident intermediates */
} moe_ep_engine_info;

typedef struct moe_ep_engine moe_ep_engine;

MOE_API int32_t moe_ep_abi_version(void);
MOE_API int32_t moe_ep_create(const moe_ep_setup *setup, moe_ep_engine **engine);
MOE_API int32_t moe_ep_info(const moe_ep_engine *engine, moe_ep_engine_info *info);
MOE_API void moe_ep_destroy(moe_ep_engine *engine);

/* ---- one call's operands, checked by the caller ---- */

typedef struct moe_ep_call {
    int32_t bs;                  /* B */
    int32_t active;              /* rows dispatched and combined: B, or the mask's prefix */
    int32_t h, k, experts;       /* E */
    int32_t dtype;               /* of x and outputs: MOE_EP_BF16 or MOE_EP_FP16 */
    const void *x;               /* (B, h) */
    const int32_t *expert_ids;   /* (B, k), -1: skip */
    const float *expert_scales;  /* (B, k) */
    const float *smooth;         /* (E, h) or NULL */
    const float *share_smooth;   /* (h) or NULL */
    void *output;                /* (B, h), rows beyond active become zeros */
    void *share_output;          /* (B, h), zeros without a shared expert */
    int64_t *expert_token_nums;  /* (L) */
} moe_ep_call;

/* 1 when x and expert_scales are finite and every active row of expert_ids holds -1 or ids below E, none
 * twice; else 0. Sizes, dtype and pointers are right already. */
MOE_API int32_t moe_ep_valid(const moe_ep_call *call);

/* ---- windows: memory of each rank that all ranks may store into ---- */

/* Offsets in bytes from a window's base, equal on all ranks; made by moe_prof.ep.windows. All is zero
 * before the first call.
 *   abort                                   uint64: 0, or 1 + rank of who asks to stop
 *   cells + src * cells_stride + l * 16     moe_ep_cell of rows that src sent for local expert l
 *   done + owner * done_stride              uint64: last epoch whose rows owner has written back here
 *   dispatch + ((src * L + l) * max_bs + expandIdx) * slot_bytes     int8 q[h], float s
 *   combine + (e * max_bs + expandIdx) * row_bytes                   o, h values of x's dtype
 */
typedef struct moe_ep_window {
    int64_t bytes;
    int64_t abort, cells, cells_stride, done, done_stride, dispatch, slot_bytes, combine, row_bytes;
    int32_t max_bs;
} moe_ep_window;

/* Written in this order: rows, count and setup, then epoch (release); read epoch first (acquire). */
typedef struct moe_ep_cell {
    uint64_t epoch; /* of the last call whose rows are all here */
    uint32_t count; /* of rows, 0 too */
    uint32_t setup; /* moe_ep_group.setup of the source */
} moe_ep_cell;

typedef struct moe_ep_group {
    int32_t rank, ranks;
    uint8_t *const *bases; /* (P): every rank's window as mapped here */
    moe_ep_window layout;
    uint64_t epoch;        /* 1, 2, 3, ...: one more with each call */
    uint32_t setup;        /* hash of all that ranks must agree on */
    int32_t crowded;       /* ranks outnumber CPUs: yield at once instead of spinning */
    double timeout_s;      /* of each wait, after which it gives up; <= 0: never */
} moe_ep_group;

/* ---- workspace, laid out by moe_prof.ep.workspace; offsets in bytes ---- */

typedef struct moe_ep_workspace {
    uint8_t *base;
    int64_t bytes;
    int64_t rows;            /* R: room for so many routed rows */
    int64_t shared_rows;     /* S: B with a shared expert, else 0 */
    int64_t x1, x1_scale;    /* (S + R, h) int8, (S + R) f32; shared rows first */
    int64_t swap;            /* (R, n), then (S, n_s) int32: C */
    int64_t x2, x2_scale;    /* (S, m_s) then (R, m) int8, (S + R) f32; may be x1's memory */
    int64_t y2;              /* (R, h) of x's dtype, L = 1 only */
    int64_t group_list;      /* (L) int64, cumulative */
    int64_t expand_idx;      /* (B, k) int32 */
    int64_t ep_send_count;   /* (L, P) int32: inclusive prefix sums over local expert, then source */
} moe_ep_workspace;

/* ---- the fused call within a node ---- */

enum {
    MOE_EP_OVERLAP = 1,    /* deep path: publish and compute expert by expert, write back at once */
    MOE_EP_CACHE_FUSED = 2 /* intermediates of a block of rows stay in caches, else in the workspace */
};

/* All of one call: dispatch, experts, combine. Without MOE_EP_OVERLAP, or with L = 1 (shallow path): all
 * rows first, then a wait for all, rows kept in y2 (L = 1) and sent after the products. Results have the
 * same bits with every flag, rank count and thread count. On an error this rank's abort word is set in
 * every window. The group must not be used after an error. */
MOE_API int32_t moe_ep_fused(moe_ep_engine *engine, const moe_ep_call *call, const moe_ep_group *group,
                             const moe_ep_workspace *workspace, int32_t flags, moe_ep_record *record);

/* The two small ops that communicate, over windows. dispatch: rows to the owners, wait for all, gather:
 * x1 (R, h) int8 and x1_scale (R) in receive order (local expert, source, slot), expand_idx (B, k),
 * ep_send_count (L, P), group_list (L), expert_token_nums (L); *rows: how many. capacity: rows of x1.
 * combine: y2 (rows, h) back to the sources, wait for all, weighted sum into call->output. */
MOE_API int32_t moe_ep_dispatch(moe_ep_engine *engine, const moe_ep_call *call,
                                const moe_ep_group *group, int64_t capacity, int8_t *x1,
                                float *x1_scale, int32_t *expand_idx, int32_t *ep_send_count,
                                int64_t *group_list, int64_t *rows, moe_ep_record *record);
MOE_API int32_t moe_ep_combine(moe_ep_engine *engine, const moe_ep_call *call,
                               const moe_ep_group *group, const void *y2, const int32_t *expand_idx,
                               const int32_t *ep_send_count, moe_ep_record *record);

/* Sets this rank's abort word in every window: others stop waiting and return MOE_EP_ABORTED. */
MOE_API void moe_ep_abort(const moe_ep_group *group);

/* ---- stages on plain memory: small ops, and what other transports are made of ---- */

/* expand_idx[t, j] = earlier (t', j') that chose the same expert (-1 where the id is -1 or t >= active);
 * counts (E). method 0: the fastest; 1: a count per choice; 2: a table of uint8 with prefix sums over rows, for
 * active <= 64, E <= 256 and k a multiple of 8 (MOE_UNSUPPORTED else). */
MOE_API int32_t moe_ep_route(int32_t active, int32_t bs, int32_t k, int32_t experts,
                             const int32_t *expert_ids, int32_t method, int32_t *expand_idx,
                             int32_t *counts);

/* Steps 1 of all chosen (t, j): q and s to bases[e] + expand_idx * slot_bytes. bases (E). */
MOE_API int32_t moe_ep_send_rows(moe_ep_engine *engine, const moe_ep_call *call,
                                 const int32_t *expand_idx, uint8_t *const *bases, int64_t slot_bytes,
                                 moe_ep_record *record);

/* Step 1 of `rows` rows as they lie: q (rows, h), scale (rows). smooth: (h) or NULL. */
MOE_API int32_t moe_ep_quantize(int64_t rows, int32_t h, int32_t dtype, const void *x,
                                const float *smooth, int8_t *q, float *scale);

/* Runs of slots one after another to x1 and x1_scale. bases, counts: (runs). */
MOE_API int32_t moe_ep_gather(int32_t h, int32_t runs, const uint8_t *const *bases,
                              const int32_t *counts, int64_t slot_bytes, int8_t *x1, float *x1_scale,
                              moe_ep_record *record);

/* Grouped products over rows sorted by local expert, group_list (L) cumulative; expert L in place of all
 * groups: pass group_list NULL, the rows are all of the shared expert.
 *   gmm1   x1 (rows, h) int8 -> c1 (rows, n) int32
 *   swiglu c1 -> x2 (rows, m) int8, x2_scale (rows)
 *   gmm2   x2, x2_scale -> y2 (rows, h) of dtype */
MOE_API int32_t moe_ep_gmm1(moe_ep_engine *engine, int64_t rows, const int64_t *group_list,
                            const int8_t *x1, int32_t *c1, moe_ep_record *record);
MOE_API int32_t moe_ep_swiglu(moe_ep_engine *engine, int64_t rows, const int64_t *group_list,
                              const int32_t *c1, const float *x1_scale, int8_t *x2, float *x2_scale,
                              moe_ep_record *record);
MOE_API int32_t moe_ep_gmm2(moe_ep_engine *engine, int64_t rows, const int64_t *group_list,
                            const int8_t *x2, const float *x2_scale, int32_t dtype, void *y2,
                            moe_ep_record *record);

/* Steps 2 to 5 of one expert (L: the shared one), fused, on the calling thread. Run r: counts[r] slots
 * from inputs[r] on, rows to outputs[r] + i * row_bytes. */
MOE_API int32_t moe_ep_expert_rows(moe_ep_engine *engine, int32_t expert, int32_t dtype, int32_t runs,
                                   const int32_t *counts, const uint8_t *const *inputs,
                                   int64_t slot_bytes, uint8_t *const *outputs, int64_t row_bytes,
                                   moe_ep_record *record);

/* The shared expert over all B rows of call->x into call->share_output, fused; zeros without one. */
MOE_API int32_t moe_ep_shared(moe_ep_engine *engine, const moe_ep_call *call, moe_ep_record *record);

/* Step 6: o of (t, j) at bases[e] + expand_idx * row_bytes. bases (E). */
MOE_API int32_t moe_ep_weighted_sum(moe_ep_engine *engine, const moe_ep_call *call,
                                    const int32_t *expand_idx, const uint8_t *const *bases,
                                    int64_t row_bytes, moe_ep_record *record);

/* The scalar kernels by themselves, for checks: the exponential, and conversions of n values. */
MOE_API void moe_ep_exp(int64_t n, const float *v, float *out);
MOE_API int32_t moe_ep_to_f32(int32_t dtype, int64_t n, const void *values, float *out);
MOE_API int32_t moe_ep_from_f32(int32_t dtype, int64_t n, const float *values, void *out);

#ifdef __cplusplus
}
#endif
#endif
