"""Contexts for checks, made by hand around a recorded machine."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from moe_prof import machine as facts
from moe_prof.checks.base import Context
from moe_prof.collectors.perf_facts import PerfFacts
from moe_prof.kernels.build import Build

BUILD = Build("release", Path("/nowhere"), ("native", "avx2", "portable"), {}, "g++ 12.2", True)


def context(root: Path, **changes) -> Context:
    """A machine with a finished build and a perf that works; keywords replace fields."""
    machine = facts.read(root)
    events = {pmu: frozenset({"cycles"}) for pmu in machine.system.core_pmus}
    base = Context(
        machine,
        BUILD,
        "",
        root / "cache",
        PerfFacts("/usr/bin/perf", "6.1.0", "", False, events, machine),
        which=lambda _: None,
        privileged=False,
        load=0.1,
    )
    return dataclasses.replace(base, **changes)
