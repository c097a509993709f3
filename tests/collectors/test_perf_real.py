"""The perf of this machine on a small program: only the region of interest is counted."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from moe_prof import machine
from moe_prof.collectors import perf_facts, perf_stat
from moe_prof.collectors.perf_reading import Form, Report
from moe_prof.errors import WorkloadError

WORKLOAD = (
    sys.executable,
    str(Path(__file__).parents[1] / "fixtures" / "perf" / "fake_workload.py"),
)
PAGES_INSIDE = 250
TIME_LIMIT_S = 60.0

pytestmark = pytest.mark.hardware


@pytest.fixture(scope="module", autouse=True)
def _require_perf() -> None:
    """Skip, with the reason, where perf cannot count software events."""
    if shutil.which("perf") is None:
        pytest.skip("perf is not installed")
    found = perf_facts.availability(machine.read())
    if not found.usable:
        pytest.skip(f"perf stat: {found.reason}")


def measured(folder: Path, form: Form, *, roi: bool = True) -> Report:
    """Page faults of the workload that touches 250 pages inside its region and 800 outside."""
    result = perf_stat.run(
        (*WORKLOAD, "ok"), folder, timeout_s=TIME_LIMIT_S, form=form, roi=roi,
        events=("page-faults", "task-clock"),
    )  # fmt: skip
    return perf_stat.read(result)


@pytest.mark.parametrize("form", ["csv", "text", "json"])
def test_only_the_region_is_counted(tmp_path: Path, form: Form) -> None:
    """250 pages touched inside the region: neither the interpreter's start nor the rest."""
    faults = measured(tmp_path, form).readings[0].value

    assert faults is not None
    assert PAGES_INSIDE <= faults <= PAGES_INSIDE + 50


def test_whole_process_counts_more(tmp_path: Path) -> None:
    """Without a region the interpreter's own start is in the figure."""
    faults = measured(tmp_path, "csv", roi=False).readings[0].value

    assert faults is not None
    assert faults > PAGES_INSIDE + 50


def test_crash_is_the_workloads(tmp_path: Path) -> None:
    """This perf returns 0 after a SIGSEGV; the collector does not."""
    with pytest.raises(WorkloadError, match="killed by SIGSEGV"):
        perf_stat.run(
            (*WORKLOAD, "crash"), tmp_path, timeout_s=TIME_LIMIT_S, events=("page-faults",)
        )


def test_software_events_can_be_counted() -> None:
    """The probe finds what needs no PMU."""
    found = perf_stat.probe_events()

    assert tuple(found) == perf_stat.EVENTS
    assert (found["task-clock"], found["page-faults"]) == ("ok", "ok")


def test_hardware_events_agree_with_the_pmu() -> None:
    """Cycles can be counted exactly where sysfs shows a CPU PMU and the user may use it."""
    facts = perf_facts.gather(machine.read())
    hardware = perf_facts.judge_hardware(facts)

    if hardware.usable:
        pytest.skip(f"this machine has a PMU: {hardware.reason}")
    assert perf_stat.probe_events(("cycles",)) == {"cycles": "not_supported"}
