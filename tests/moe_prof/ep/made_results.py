"""Results of expert-parallel cases made by hand."""

from __future__ import annotations

from moe_prof.ep.cases import FUSED, SMALL_OPS, Case
from moe_prof.ep.results import CaseResult, VariantResult

CASE = Case(h=512, n=1024, experts=4, top_k=2, tokens=16, ranks=2)
ROUNDS = 8


def variant(name, call_s, **changes):
    """A variant of two ranks; the second is the slower by a tenth."""
    fields = {
        "variant": name,
        "samples_s": tuple((call_s, 1.1 * call_s * (1 + 0.001 * (r % 3))) for r in range(ROUNDS)),
        "cpu_s": 2 * call_s,
        "calls": 10,
        "sha256": "ab" * 32,
        "isa": "avx2",
        "microkernel": "qs8_gemm",
        "stage_s": (
            {"dispatch": 0.1 * call_s, "wait_dispatch": 0.2 * call_s, "gmm1": 0.6 * call_s},
            {"dispatch": 0.1 * call_s, "wait_dispatch": 0.1 * call_s, "gmm1": 0.7 * call_s},
        ),
        "wall_s": (call_s, call_s),
        "counted": {"gmm1": {"memory_read": 3_500_000, "cache_written": 5_000}},
        "predicted": {"gmm1": {"memory_read": 3_500_000, "cache_written": 5_000}},
        "waits_s": {
            "wait_dispatch": ((0.0, 0.2 * call_s), (0.1 * call_s, 0.0)),
            "wait_combine": ((0.0, 0.0), (0.0, 0.0)),
        },
    }
    return VariantResult(**(fields | changes))


def result(fused_s=0.8e-3, small_s=1e-3, **changes):
    """A case in which fusing helps."""
    fields = {
        "case": CASE,
        "variants": (variant(FUSED, fused_s), variant(SMALL_OPS, small_s, waits_s={})),
        "transport": "shared",
        "mpi": "MPICH 5.0.2",
        "expert_rows": (8, 8, 8, 8),
        "workspace_bytes": 1 << 20,
        "workspace_apart_bytes": 3 << 19,
        "window_bytes": 1 << 18,
        "others_cpus": 0.01,
        "cpus": 2,
    }
    return CaseResult(**(fields | changes))
