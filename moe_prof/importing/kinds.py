"""The table of kinds of output that ``import`` reads: one row a kind, the surest first.

Adding one is a module with a :class:`Kind` and a row here; help, ``list`` and the message about
unknown files follow.
"""

from __future__ import annotations

from moe_prof.importing import (
    gprof,
    llvm_mca,
    moe_bench,
    perf_report,
    perf_stat,
    perfspect,
    pyperf,
    samples,
    toplev,
    valgrind,
    vtune,
)
from moe_prof.importing.base import Kind

KINDS: tuple[Kind, ...] = (
    moe_bench.KIND,
    perf_stat.TEXT,
    perf_stat.JSON,
    perf_stat.CSV,
    perf_report.KIND,
    samples.SCRIPT_KIND,
    gprof.KIND,
    vtune.KIND,
    valgrind.FILE,
    valgrind.ANNOTATION,
    valgrind.SUMMARY,
    llvm_mca.TEXT,
    llvm_mca.JSON,
    toplev.KIND,
    perfspect.KIND,
    pyperf.KIND,
    samples.FOLDED_KIND,
    perf_stat.FRAGMENT,
    perf_stat.TABLE,
)
