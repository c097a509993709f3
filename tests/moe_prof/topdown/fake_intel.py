"""An Intel machine with a PMU, played by recorded perf outputs: counts, or slots if asked for."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from moe_prof.collectors import perf_facts
from moe_prof.collectors.perf_facts import PerfFacts
from moe_prof.machine import Machine
from moe_prof.topdown import counted
from tests.moe_prof.topdown.made import executable

FIXTURES = Path(__file__).parents[2] / "fixtures" / "perf"
SLOTS = frozenset(
    {"slots", "topdown-retiring", "topdown-bad-spec", "topdown-fe-bound", "topdown-be-bound",
     "topdown-heavy-ops", "topdown-br-mispredict", "topdown-fetch-lat", "topdown-mem-bound"}
)  # fmt: skip


def fake_perf(folder: Path, counts: Path | None = None) -> Path:
    """A folder for the front of PATH with a perf 6.1 that replays ``counts``, or slots."""
    report = counts or FIXTURES / "intel_counts.csv"
    bin_folder = folder / "bin"
    bin_folder.mkdir()
    executable(
        bin_folder / "perf",
        'if [ "$1" = --version ]; then echo "perf version 6.1.0"; exit; fi\n'
        f'case "$*" in *topdown-retiring*) FAKE_PERF_REPORT="{FIXTURES / "spr_slots.csv"}";; '
        f'*) FAKE_PERF_REPORT="{report}";; esac\n'
        f'export FAKE_PERF_REPORT\nexec "{sys.executable}" "{FIXTURES / "fake_perf.py"}" "$@"',
    )
    return bin_folder


def pretend_intel(patch: pytest.MonkeyPatch, folder: Path, counts: Path | None = None) -> None:
    """Put the fake perf on PATH and let the facts be those of an Intel core with slots."""
    patch.setenv("PATH", f"{fake_perf(folder, counts)}:/usr/bin:/bin")
    patch.delenv("FAKE_PERF", raising=False)
    patch.delenv("FAKE_PERF_REFUSE", raising=False)
    gather = perf_facts.gather

    def gathered(machine: Machine) -> PerfFacts:
        intel = replace(
            machine,
            processor=replace(machine.processor, architecture="x86_64", vendor="GenuineIntel"),
            system=replace(machine.system, perf_event_paranoid=1, core_pmus=("cpu",)),
            limits=replace(machine.limits, hypervisor=None),
        )
        return replace(gather(machine), machine=intel, events={"cpu": SLOTS})

    patch.setattr(counted.perf_facts, "gather", gathered)
