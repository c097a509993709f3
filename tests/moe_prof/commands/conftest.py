"""One real run of ``topdown`` on a tiny layer, and its measurement replayed on played machines."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from moe_prof.commands import topdown as command
from moe_prof.kernels import build as kernel_build
from moe_prof.topdown import counted, simulation
from tests.moe_prof.commands.running import Ran, main
from tests.moe_prof.commands.topdown_run import NO_COUNTERS, SHAPE, VARIANTS, calm
from tests.moe_prof.topdown.made import simulated


@dataclass
class Measured:
    """The real run, its session's folder and what its measuring functions returned."""

    ran: Ran
    folder: Path
    answers: dict[str, Any]


@pytest.fixture(scope="session")
def real(tmp_path_factory):
    """One run without counters, everything else real: kernels, clocks, ceilings, callgrind."""
    folder = tmp_path_factory.mktemp("topdown") / "session"
    answers: dict[str, Any] = {}
    for kind in ("release", "phases"):
        kernel_build.build(kind)  # its minutes on a busy machine are not to come from the limit

    def recording(name, function):
        def recorded(*args, **options):
            found = function(*args, **options)
            answers.setdefault(name, found)  # later ones are of the paths that are modelled
            return found

        return recorded

    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("MOE_PROF_ISA", raising=False)
        patch.setattr(counted, "find_counters", lambda machine: NO_COUNTERS)
        for name in ("measure", "measure_phases"):
            patch.setattr(command, name, recording(name, getattr(command, name)))
        ceilings = command.measured_ceilings
        patch.setattr(ceilings, "measure", recording("ceilings", ceilings.measure))
        ran = main(
            "topdown", SHAPE, "--variant", ",".join(VARIANTS), "--max-time", "120", "--repeat", "3",
            "--format", "json", "--output", folder,
        )  # fmt: skip
    return Measured(ran, folder, answers)


@pytest.fixture
def replay(real, monkeypatch, tmp_path):
    """Run the command on the recorded measurement; ``change`` alters its timings first."""
    monkeypatch.delenv("MOE_PROF_ISA", raising=False)
    monkeypatch.setattr(counted, "find_counters", lambda machine: NO_COUNTERS)
    ceilings = real.answers["ceilings"]
    monkeypatch.setattr(command.measured_ceilings, "measure", lambda *a, **o: ceilings)

    def go(
        *argv, change=lambda timing: timing, made=calm, requests=None, variants=VARIANTS, **changes
    ):
        found = real.answers["measure"]
        timings = tuple(
            change(replace(timing, variant=name))
            for name, timing in zip(variants, found.timings, strict=True)
        )

        def measured(request, progress, *, folder):
            if requests is not None:
                requests.append(request)
            return replace(found, timings=timings, **{"crowd": None, **changes})

        def phases(request, progress, *, folder):
            wanted = [job.variant for job in request.jobs]
            times = zip(variants, real.answers["measure_phases"], strict=True)
            return tuple(made(t, name) for name, t in times if name in wanted)

        monkeypatch.setattr(command, "measure", measured)
        monkeypatch.setattr(command, "measure_phases", phases)
        options = ["--variant", ",".join(variants), "--output", tmp_path / "session"]
        return main("topdown", SHAPE, *options, "--format", "json", *argv)

    return go


@pytest.fixture
def quick(monkeypatch):
    """Hand-made counts instead of callgrind; gives the jobs that were simulated."""
    jobs = []

    def made(wanted, scenario, **options):
        jobs.extend(wanted)
        return {job.variant: simulated(variant=job.variant, isa=job.isa) for job in wanted}, {}

    monkeypatch.setattr(simulation, "simulate", made)
    return jobs
