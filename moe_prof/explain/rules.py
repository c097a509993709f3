"""The table of rules: name, what to do, where the rule is from, and the function that looks.

The order is that of the output: first what makes figures untrue, then waiting, then work.
"""

from __future__ import annotations

from moe_prof.explain import change, idle, parallel, trust, work
from moe_prof.explain.finding import Rule

_YASIN = "A. Yasin, ISPASS 2014 (top-down method)"
_OWN = "this project's choice of threshold"
_PERF = "perf-stat(1), perf-record(1)"
_FOG = "A. Fog, The microarchitecture of Intel, AMD and VIA CPUs"
_SDM = "Intel 64 and IA-32 Architectures Software Developer's Manual, PAUSE"
_ROOFLINE = "S. Williams et al., CACM 52(4), 2009 (roofline)"
_MODEL = "moe_prof/model/interval.py"

RULES: tuple[Rule, ...] = (
    Rule("wrong_result", "put the result right first", _OWN, of_stage=trust.wrong_result),
    Rule(
        "other_conditions", "measure both in one run, on one machine, with one seed and build",
        _OWN, of_pair=change.other_conditions,
    ),
    Rule(
        "clock_changed", "measure both in one run, interleaved; fix the frequency if you may",
        _OWN, of_pair=change.clock_changed,
    ),
    Rule(
        "crowded", "repeat on an idle machine, with fewer --threads, or pinned to free CPUs",
        "proc(5), /proc/stat", of_stage=idle.crowded,
    ),
    Rule("noisy", "repeat on a quieter machine or with more --repeat", _OWN, of_stage=trust.noisy),
    Rule("impossible", "see the raw output; count fewer events at once", _PERF,
         of_stage=trust.impossible),
    Rule("multiplexed", "count fewer events in a run, or repeat with -r", _PERF,
         of_stage=trust.multiplexed),
    Rule(
        "too_short", "repeat the work inside the process, e.g. more iterations", _OWN,
        of_stage=trust.too_short,
    ),
    Rule(
        "whole_process", "count the forward loop only, as 'moe-prof counters' does, or run so many "
        "forwards that the rest vanishes", _PERF, of_stage=trust.whole_process,
    ),
    Rule("summed_cycles", "judge speed by wall time, work by instructions", _PERF,
         of_stage=trust.summed_cycles),
    Rule(
        "counted_only", "time it on the machine that is meant: 'moe-prof bench' there", _OWN,
        of_stage=work.counted_only,
    ),
    Rule("modelled_edge", "count on a machine with a PMU: 'moe-prof doctor' says what it takes",
         _MODEL, of_stage=trust.modelled_edge),
    Rule("oversubscribed", "use as many --threads as there are usable CPUs", "sched(7)",
         of_stage=idle.oversubscribed),
    Rule("serial_share", "split the work inside a token, or use one thread",
         "G. Amdahl, AFIPS 1967", of_stage=idle.serial_share),
    Rule("imbalance", "cut the largest bucket, balance by rows, or schedule dynamically", _OWN,
         of_stage=idle.imbalance),
    Rule("even_waiting", "merge parallel regions, or give threads more work between barriers", _OWN,
         of_stage=idle.even_waiting),
    Rule("parallel_efficiency", "use fewer threads, or find the serial part", _OWN,
         of_stage=idle.parallel_efficiency),
    Rule(
        "ipc_of_spinning", "judge by wall time and by instructions; let idle threads sleep to see "
        "the kernel's own IPC", _SDM, of_stage=idle.ipc_of_spinning,
    ),
    Rule("ipc_fell_while_spinning", "count cache-misses as well; judge by wall time", _SDM,
         of_pair=change.ipc_fell_while_spinning),
    Rule("instructions_of_waiting", "repeat on an idle machine; compare time in the forward loop",
         _SDM, of_pair=change.instructions_of_waiting),
    Rule("rate_rose_misses_fell", "compare misses themselves, per forward or per MAC", _PERF,
         of_pair=change.rate_rose_misses_fell),
    Rule("ipc_misleads", "compare times", _OWN, of_pair=change.ipc_misleads),
    Rule("vectorised", "see what binds now: 'moe-prof topdown', 'moe-prof roofline'", _YASIN,
         of_pair=change.vectorised),
    Rule("hot_phase", "work there first", _OWN, of_stage=work.hot_phase),
    Rule("verdict", "see the advice beside it in the session", "moe_prof/analysis/verdict.py",
         of_stage=work.verdict),
    Rule(
        "instruction_bound", "make each instruction do more: vectorize, use int8 dot products, "
        "pack the weights", _YASIN, of_stage=work.instruction_bound,
    ),
    Rule("branch_bound", "use masks or selects; sort work by its branch", _FOG,
         of_stage=work.branch_bound),
    Rule("frontend_bound", "shrink the hot code: unroll less, keep cold paths out of line", _YASIN,
         of_stage=work.frontend_bound),
    Rule("memory_bound", "read each weight once for many tokens: group by expert, tile", _YASIN,
         of_stage=work.memory_bound),
    Rule("memory_latency", "prefetch, pack what is used together, follow fewer pointers", _FOG,
         of_stage=work.memory_latency),
    Rule("core_bound", "use more independent accumulators, or wider instructions", _YASIN,
         of_stage=work.core_bound),
    Rule("weights_leave_cache", "keep an expert's weights in one core's cache; group tokens by "
         "expert", _ROOFLINE, of_stage=work.weights_leave_cache),
    Rule("hot_router", "vectorize the router, or choose by int8 candidates and check them exactly",
         _OWN, of_stage=work.hot_router),
    Rule("hot_exp", "use a vector approximation of exp within the tolerance", _OWN,
         of_stage=work.hot_exp),
    Rule("tiny_buckets", "use a kernel of fewer rows, or put small buckets together", _OWN,
         of_stage=work.tiny_buckets),
    Rule("denormals", "set flush-to-zero and denormals-are-zero, or scale the inputs", _FOG,
         of_stage=work.denormals),
    Rule("fusing_result", "see bytes, exposed communication and loads beside it", _OWN,
         of_stage=parallel.fusing_result),
    Rule("weights_dominate", "send more tokens at a time: each weight read then serves more rows",
         _ROOFLINE, of_stage=parallel.weights_dominate),
    Rule(
        "exposed_communication", "give each rank several experts, so that receiving overlaps with "
        "products, and more rows an expert", _OWN, of_stage=parallel.exposed_communication,
    ),
    Rule("hot_expert", "replicate the hot expert, or place experts by their load", _OWN,
         of_stage=parallel.hot_expert),
    Rule("waiting_for_rank", "look at that rank's load, threads and CPUs", _OWN,
         of_stage=parallel.waiting_for_rank),
    Rule("page_faults", "allocate and touch memory before the loop; use huge pages", "getrusage(2)",
         of_stage=work.page_faults),
)  # fmt: skip
