"""What the tests of ``topdown`` share: the layer, its variants, a machine without counters."""

from __future__ import annotations

from dataclasses import replace

from moe_prof.topdown import counted

SHAPE = "4,32,32,4,2"
VARIANTS = ("scalar", "openmp")
NO_PMU = "this virtual machine has no CPU PMU"
NO_COUNTERS = counted.Counters((), None, NO_PMU, NO_PMU, "run on bare metal")


def calm(times, name):
    """Phase times of an idle machine: on a crowded one teams of threads do little but wait."""
    threads = (replace(thread, wait_s=0.1 * thread.busy_s) for thread in times.threads)
    return replace(times, variant=name, threads=tuple(threads), crowd=None)
