"""``import`` on every recorded or reconstructed output: each listed value is among its rows."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.moe_prof.commands.running import Ran, main

FOLDER = Path(__file__).parents[2] / "fixtures" / "corpus"
INDEX = json.loads((FOLDER / "index.json").read_text(encoding="utf-8"))
CASES = [
    pytest.param(entry["file"], key, value, id=f"{entry['id']}-{key}")
    for entry in INDEX
    for key, value in entry["expected"].items()
]
Row = dict[str, Any]

# What each key of the index means: fields that the row must have; `name` is a part of its source.
# A value printed in percent, ms or ns is in base units in the rows: `times` says by how much.
_PLAIN: dict[str, dict[str, Any]] = {
    "duration_time_ns": {"metric": "duration_time", "times": 1e9},
    "user_time_ns": {"metric": "user_time", "times": 1e9},
    "elapsed_s": {"metric": "time_elapsed"},
    "metric": {"metric": "CPUs utilized"},
    "CPU0.context-switches": {"metric": "context-switches", "cpu": "CPU0"},
    "CPU1.context-switches": {"metric": "context-switches", "cpu": "CPU1"},
    "t0.page-faults": {"metric": "page-faults", "time_s": 0.0},
    "t3.task_clock_ms": {"metric": "task-clock", "time_s": 0.181050799, "times": 1e3},
    "sum.page-faults(derived)": {"metric": "page-faults", "time_s": None},
    "summary.page-faults": {"metric": "page-faults", "time_s": None},
    "CPU0.count": {"metric": "cpu/event=0x9c,umask=0x1,cmask=0x4/", "cpu": "CPU0"},
    "task-clock.samples": {"metric": "samples", "name": "task-clock:u"},
    "task-clock.top": {"metric": "Overhead", "name": "moe::gemm_s8<long, 16>", "times": 100},
    "page-faults.samples": {"metric": "samples", "name": "page-faults:u"},
    "page-faults._dl_map_object_from_fd": {
        "metric": "Overhead", "name": "_dl_map_object_from_fd", "times": 100,
    },
    "children[main]": {"metric": "Children", "name": "main [busy]", "times": 100},
    "tree.gemm_s8": {"metric": "call tree", "name": "main > moe::gemm_s8", "times": 100},
    "total_s": {"metric": "total seconds"},
    "gemm_s8.self_s": {"metric": "self seconds", "name": "gemm_s8"},
    "gemm_s8.calls": {"metric": "calls", "name": "gemm_s8"},
    "even.cycle": {"metric": "cycle", "name": "even("},
    "f.calls": {"metric": "calls", "name": "f; "},
    "gemm.Ir": {"metric": "Ir", "name": "gemm"},
    "summary": {"metric": "Ir", "scope": "process"},
    "summary_Ir": {"metric": "Ir", "scope": "process"},
    "complete": {"metric": "complete"},
    "instructions": {"metric": "Instructions"},
    "uops": {"metric": "Total uOps"},
    "ipc": {"metric": "IPC"},
    "vpdpbusd.latency": {"metric": "Latency", "name": "vpdpbusd"},
    "bad": {"metric": "Bad_Speculation", "times": 100},
    "be": {"metric": "Backend_Bound", "times": 100},
    "S0-C0.retiring": {"metric": "retiring", "cpu": "S0-C0", "times": 100},
    "S0-C0.be": {"metric": "backend bound", "cpu": "S0-C0"},
    "S0-C1.be": {"metric": "backend bound", "cpu": "S0-C1", "times": 100},
    "__kmp_fork_barrier.spin_s": {"metric": "CPU Time:Spin Time", "name": "__kmp_fork_barrier"},
    "__kmp_fork_barrier.imbalance_s": {
        "metric": "CPU Time:Spin Time:Imbalance or Serial Spinning", "name": "__kmp_fork_barrier",
    },
    "total.cpu_s": {"metric": "CPU Time", "scope": "process"},
    "total.effective_s": {"metric": "CPU Time:Effective Time", "scope": "process"},
    "total.spin_s": {"metric": "CPU Time:Spin Time", "scope": "process"},
    "total.overhead_s": {"metric": "CPU Time:Overhead Time", "scope": "process"},
    "r0.cpi": {"metric": "CPI", "time_s": 0.0},
    "r0.retiring": {"metric": "TMA_Retiring(%)", "time_s": 0.0, "times": 100},
    "r1.cpi": {"metric": "CPI", "time_s": 1.0},
    "r1.retiring": {"metric": "TMA_Retiring(%)", "time_s": 1.0},
    "r2.freq": {"metric": "CPU operating frequency (in GHz)", "time_s": 2.0, "times": 1e-9},
}  # fmt: skip


@cache
def ran(name: str) -> Ran:
    """``import FILE --format json``, once a file."""
    return main("import", FOLDER / name, "--format", "json")


@pytest.fixture(autouse=True, scope="module")
def _sessions(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Sessions go into a temporary folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MOE_PROF_SESSIONS", str(tmp_path_factory.mktemp("sessions")))
        yield
    ran.cache_clear()


def one(rows: list[Row], *, name: str = "", **fields: Any) -> Row:
    """The first row with these fields."""
    for row in rows:
        if name in row["source"] and all(row[key] == value for key, value in fields.items()):
            return row
    raise AssertionError(f"no row with {fields} and {name!r}")


def value_of(rows: list[Row], name: str, key: str) -> object:
    """What the rows say for one key of the index."""
    special: dict[tuple[str, str], Any] = {
        ("E01.txt", "samples"): lambda: one(rows, metric="samples", name="all events")["value"],
        ("E01.txt", "page-faults"): lambda: one(rows, metric="samples", name="page-f")["value"],
        ("E01.txt", "task-clock"): lambda: one(rows, metric="samples", name="task-clock")["value"],
        ("F01.txt", "cycle.calls"): lambda: one(rows, metric="called", name="as a whole")[
            "source"
        ].rpartition("called ")[2],
        ("H05.txt", "cycles"): lambda: one(rows, metric="Total Cycles")["value"],
        ("B10.txt", "verdict"): lambda: (
            "ambiguous: refuse or repair, advise LC_ALL=C"
            if "LC_ALL=C" in ran(name).err
            else ran(name).err
        ),
    }
    if (name, key) in special:
        return special[name, key]()
    if key == "intervals":
        return len({row["time_s"] for row in rows if row["time_s"] is not None})
    if key == "rows":
        return len(rows)
    if key == "task_clock_ms":
        return one(rows, metric=_task_clock(rows))["value"] * 1e3
    if key in ("rel_stddev_pct", "rel_stddev_pct[page-faults]"):
        event = "page-faults" if "[" in key else "task-clock"
        row = one(rows, metric=event)
        return float(row["source"].partition("+-")[2].partition(" ")[0])
    if key in ("pcnt_running", "running_pct"):
        return one(rows, metric="task-clock")["mux_pct"]
    if key == "CPU1.running_pct":
        return one(rows, cpu="CPU1")["mux_pct"]
    wanted = dict(_PLAIN.get(key, {"metric": key}))
    scale = wanted.pop("times", 1)
    found = one(rows, **wanted)["value"]
    return None if found is None else found * scale


def _task_clock(rows: list[Row]) -> str:
    return next(row["metric"] for row in rows if row["metric"].startswith("task-clock"))


@pytest.mark.parametrize(("name", "key", "expected"), CASES)
def test_listed_value(name: str, key: str, expected: object) -> None:
    """Each listed value is among the rows, in base units; a missing one is null."""
    found = value_of(ran(name).document["rows"], name, key)

    if isinstance(expected, float | int) and not isinstance(expected, bool):
        expected = pytest.approx(expected)
    assert found == expected


@pytest.mark.parametrize("entry", INDEX, ids=lambda entry: entry["id"])
def test_file_is_imported(entry: dict[str, str]) -> None:
    """Every file is recognised and leaves a session; nothing is refused."""
    found = ran(entry["file"])

    assert (found.code, found.document["session"] is not None) == (0, True)
