"""Small sessions made by hand: of every command, and one whose every name is an attack."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from moe_prof import session as sessions
from moe_prof.collectors.stacks import Profile
from moe_prof.ep.result_rows import case_rows
from moe_prof.hotspots import summary
from moe_prof.hotspots.kept import keep_profile
from moe_prof.rows import Row, unavailable
from moe_prof.scenario import SCENARIOS, Scenario
from tests.moe_prof.ep import made_results
from tests.moe_prof.hotspots.stack_making import profile, stack
from tests.moe_prof.topdown.made import row

MACHINE = {
    "model_name": "Test CPU", "architecture": "x86_64", "usable_cpus": 2, "has_pmu": False,
    "caches": [{"level": 1, "type": "Data", "size_bytes": 32768}], "memory_total_bytes": 1 << 34,
    "governors": ["performance"],
}  # fmt: skip
STAGES = {"scalar": 4e-3, "packed": 1e-4}
ATTACK = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'&$x_1^2$]]>-->"


def timing_rows(stages: dict[str, float] = STAGES) -> list[Row]:
    """What ``bench`` says: time, interval, speedup, correctness."""
    rows = []
    first = next(iter(stages.values()))
    for name, time_s in stages.items():
        rows += [row("time", time_s * (1 + 0.01 * at), name, unit="s", repeat=at) for at in (0, 1)]
        rows += [
            row("isa", None, name, source="avx2"),
            row("threads", 2.0, name),
            row("time", time_s, name, unit="s", stddev=1e-6, n=9),
            row("time_ci_low", 0.9 * time_s, name, unit="s"),
            row("time_ci_high", 1.1 * time_s, name, unit="s"),
            row("speedup", first / time_s, name),
            row("speedup_ci_low", 0.95 * first / time_s, name),
            row("speedup_ci_high", 1.05 * first / time_s, name),
            row("rel_rmse", 1e-7, name),
        ]
    return rows


def topdown_rows(stages: dict[str, float] = STAGES) -> list[Row]:
    """What ``topdown`` adds: slots, phases, threads, counts, ceilings, verdicts."""
    rows = [
        row("ceiling_clock", 3e9, "", unit="Hz", thread="1", collector="ceilings", scope="machine"),
        row("ceiling_int8_avx2", 9e10, "", unit="MAC/s", thread="2", collector="ceilings",
            scope="machine"),
    ]  # fmt: skip
    for name in stages:
        for node, share in (
            ("Retiring", 0.6), ("Bad_Speculation", 0.05), ("Frontend_Bound", 0.05),
            ("Backend_Bound", 0.3), ("Backend_Bound.Memory_Bound", 0.1),
            ("Backend_Bound.Core_Bound", 0.2),
        ):  # fmt: skip
            rows.append(row(node, share, name, unit="slots", provenance="modelled"))
        for thread, busy in (("0", 3e-5), ("1", 1e-5)):
            rows.append(row("busy_time", busy, name, unit="s", thread=thread))
            rows.append(row("wait_time", 4e-5 - busy, name, unit="s", thread=thread))
        rows += [
            row("phase_time", 3e-5, name, unit="s", phase="gate_up"),
            row("phase_time", 1e-5, name, unit="s", phase="down"),
            row("spin_fraction", 0.25, name),
            row("instructions", 1e6, name, provenance="simulated"),
            row("IPC", 2.5, name, provenance="modelled"),
            row("roofline_fraction", 0.4, name, provenance="modelled"),
            row("roofline_ceiling", None, name, source="exact int8 rate, by avx2"),
            row("verdict", None, name, source="instruction_bound"),
            row("verdict_evidence", None, name, source="Retiring 60.0 % of slots"),
            row("verdict_advice", None, name, source="use wider instructions"),
        ]
    rows.append(unavailable("cycles", "1", "no PMU", collector="perf_stat", variant="scalar"))
    return rows


def small_profile(name: str = "gemm") -> Profile:
    """Two threads, one of which waits."""
    return profile(
        stack("main@bench", f"{name}@bench", weight=6.0, thread="0", phase="gate_up"),
        stack("main@bench", "store@bench", weight=2.0, thread="0", phase="combine"),
        stack("main@bench", "gomp_barrier_wait@libgomp.so.1", weight=2.0, thread="1", waiting=True),
    )


def imported_rows(variant: str = "packed") -> list[Row]:
    """What ``import`` says of perf stat and of perf report."""
    return [
        row("cycles", 1e9, variant, collector="perf_stat", scope="process"),
        row("instructions", 2e8, variant, collector="perf_stat", scope="process"),
        row("Overhead", 0.4, variant, collector="perf_report", scope="function",
            source="expert_ffn; libmoe.so"),
    ]  # fmt: skip


def save(
    folder: Path,
    command: str,
    rows: Sequence[Row],
    *,
    machine: dict[str, object] = MACHINE,
    argv: Sequence[str] = ("bench", "S3"),
    notes: Sequence[str] = (),
    profiles: dict[str, Profile] | None = None,
    environment: dict[str, str] | None = None,
    scenario: Scenario = SCENARIOS["S3"],
) -> Path:
    """A session in a new folder."""
    variants = tuple(dict.fromkeys(r.variant for r in rows if r.variant))
    with sessions.create(
        command, scenario=scenario.label, shape=scenario.shape, variants=variants, seed=0,
        machine=machine, tools={"perf": "perf version 6.1"}, argv=argv, folder=folder,
    ) as opened:  # fmt: skip
        opened.add(rows)
        opened.update(environment=environment or {})
        for text in notes:
            opened.note(text)
        for name, kept in (profiles or {}).items():
            opened.add(summary.rows(kept, scenario=scenario.label, variant=name, lines=False))
            keep_profile(folder, name, kept)
    return folder


def save_all(folder: Path) -> list[Path]:
    """One session of every kind."""
    return [
        save(folder / "topdown", "topdown", timing_rows() + topdown_rows()),
        save(folder / "bench", "bench", timing_rows()),
        save(folder / "hotspots", "hotspots", [], profiles={"packed": small_profile()}),
        save(folder / "import", "import", imported_rows()),
        save(folder / "ep", "ep", case_rows(made_results.result(), usable_cpus=2)),
    ]


def save_attack(folder: Path) -> Path:
    """Every text that comes from outside tries to become markup."""
    stages = {"scalar": 4e-3, ATTACK: 1e-4}
    rows = [*timing_rows(stages), *topdown_rows(stages), *imported_rows(ATTACK)]
    rows.append(unavailable(ATTACK, ATTACK, ATTACK, collector=ATTACK, variant=ATTACK))
    rows.append(row("verdict_evidence", None, ATTACK, source=ATTACK))
    rows.append(row("phase_time", 1e-5, ATTACK, unit="s", phase=ATTACK))
    return save(
        folder, "topdown", rows,
        machine=MACHINE | {"model_name": ATTACK, "kernel": ATTACK, "governors": [ATTACK]},
        argv=("topdown", ATTACK), notes=(ATTACK,), profiles={ATTACK: small_profile(ATTACK)},
        environment={"OMP_NUM_THREADS": ATTACK},
    )  # fmt: skip
