"""Counters and top-down figures in one call, with the fallbacks between attempts."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from moe_prof.collectors.perf_collect import collect_counters, collect_topdown
from moe_prof.collectors.perf_rows import Labels
from moe_prof.collectors.perf_topdown_plan import Facts
from moe_prof.errors import UnavailableError, WorkloadError

FOLDER = Path(__file__).parents[1] / "fixtures" / "perf"
WORKLOAD = (sys.executable, str(FOLDER / "fake_workload.py"))
SLOTS = frozenset(
    {"slots", "topdown-retiring", "topdown-bad-spec", "topdown-fe-bound", "topdown-be-bound",
     "topdown-heavy-ops", "topdown-br-mispredict", "topdown-fetch-lat", "topdown-mem-bound"}
)  # fmt: skip
SPR = Facts("GenuineIntel", (6, 1), {"cpu": SLOTS}, "sapphirerapids")
TIME_LIMIT_S = 30.0


def test_counters_of_the_region(perf: str, tmp_path: Path) -> None:
    """Rows with the caller's labels."""
    found = collect_counters(
        (*WORKLOAD, "ok"), tmp_path, Labels(variant="packed"), timeout_s=TIME_LIMIT_S, perf=perf
    )

    assert {(row.variant, row.scope) for row in found.rows} == {("packed", "roi")}
    assert "--control" in found.run.argv


def test_counters_of_the_whole_process(perf: str, tmp_path: Path) -> None:
    """A command without a region is counted from start to end."""
    labels = Labels(scope="process")
    found = collect_counters(
        (*WORKLOAD, "silent"), tmp_path, labels, timeout_s=TIME_LIMIT_S, perf=perf
    )

    assert "--control" not in found.run.argv


def test_slot_counts_come_first(perf: str, tmp_path: Path) -> None:
    """The slot group gives both levels."""
    found = collect_topdown(
        (*WORKLOAD, "ok"), tmp_path, Labels(), facts=SPR, timeout_s=TIME_LIMIT_S, perf=perf
    )

    values = {row.metric: row.value for row in found.rows if row.level}
    assert (values["Retiring"], values["Backend_Bound.Memory_Bound"]) == (0.75, 0.005)
    assert found.run.argv[found.run.argv.index("-e") + 1].startswith("{slots,")


def test_second_way_when_the_first_is_refused(
    perf: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """perf's own analysis, read from its text form; the refusal is noted."""
    monkeypatch.setenv("FAKE_PERF_REFUSE", "-e")
    monkeypatch.setenv("FAKE_PERF_REPORT", str(FOLDER / "topdown_61_level2.txt"))
    found = collect_topdown(
        (*WORKLOAD, "ok"), tmp_path, Labels(), facts=SPR, timeout_s=TIME_LIMIT_S, perf=perf
    )

    assert {row.metric: row.value for row in found.rows}["Retiring"] == 0.752
    assert found.notes == (
        "-e: perf does not know the event {slots}; see `perf list`, or use a newer perf",
    )


def test_default_events_are_no_top_down_figures(
    perf: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """perf 6.1 runs its default events for an unknown metric, with exit code 0."""
    report = tmp_path / "default.txt"
    report.write_text(" Performance counter stats for 't':\n\n     5      page-faults\n")
    monkeypatch.setenv("FAKE_PERF_REPORT", str(report))
    arm = Facts("ARM", (6, 1), {"armv8_pmuv3_0": frozenset({"stall_slot"})})

    with pytest.raises(UnavailableError, match="-M: perf ran but printed no top-down figure"):
        collect_topdown(
            (*WORKLOAD, "ok"), tmp_path / "raw", Labels(), facts=arm, timeout_s=TIME_LIMIT_S,
            perf=perf,
        )  # fmt: skip


def test_every_refusal_is_told(perf: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reason of each attempt, in one line."""
    monkeypatch.setenv("FAKE_PERF", "forbidden")

    with pytest.raises(UnavailableError, match=r"-e: perf is forbidden.*--topdown: perf is forb"):
        collect_topdown(
            (*WORKLOAD, "ok"), tmp_path, Labels(), facts=SPR, timeout_s=TIME_LIMIT_S, perf=perf
        )


def test_workload_failure_ends_the_attempts(perf: str, tmp_path: Path) -> None:
    """A crash is not retried under other counters."""
    with pytest.raises(WorkloadError, match="killed by SIGSEGV"):
        collect_topdown(
            (*WORKLOAD, "crash"), tmp_path, Labels(), facts=SPR, timeout_s=TIME_LIMIT_S, perf=perf
        )
