"""Rules on one stage: threads that wait, and what waiting does to its figures."""

from __future__ import annotations

from moe_prof.analysis.crowding import OTHERS, SHARED, is_crowded, used_by_others
from moe_prof.explain.costs import cpus_busy, miss_share
from moe_prof.explain.finding import Told
from moe_prof.explain.stage import Stage
from moe_prof.hotspots.waiting import is_wait_name
from moe_prof.rows import Row
from moe_prof.units import share_text

WAITING_MIN = 0.25
SERIAL_MIN = 0.7
IMBALANCE_MIN = 1.2
LOW_IPC = 0.7
MISSES_MAX = 0.3
EFFICIENCY_MAX = 0.75


def crowded(stage: Stage) -> Told | None:
    """Other programs held the CPUs."""
    others = used_by_others(stage.index, stage.variant)
    cpus = stage.machine_row(SHARED) or stage.row(SHARED)
    if cpus is None or not is_crowded(stage.threads, cpus.value, others):
        return None
    rows = (stage.machine_row(OTHERS), stage.row(OTHERS), cpus, stage.row("spin_fraction"))
    return Told(
        "Other programs used CPUs that its threads wanted. Its time is too long, and its waiting "
        "says nothing about the code.",
        tuple(row for row in rows if row is not None),
    )


def oversubscribed(stage: Stage) -> Told | None:
    """More threads than CPUs."""
    row = stage.row("threads")
    if row is None or row.status != "out_of_bounds":
        return None
    text = "It has more threads than CPUs that it may use, so that they wait for each other."
    return Told(text, (row, *stage.rows_of("spin_fraction")))


def serial_share(stage: Stage) -> Told | None:
    """One thread does nearly all of the work."""
    if not _waits(stage):
        return None
    busy = _busy(stage)
    total = sum(row.value or 0.0 for row in busy)
    if len(busy) < 2 or not total:
        return None
    share = max(row.value or 0.0 for row in busy) / total
    if share < max(SERIAL_MIN, IMBALANCE_MIN / len(busy)):
        return None
    return Told(
        f"It is serial: one of {len(busy)} threads does {share_text(share)} of the work, the "
        "others wait for it.",
        (*stage.rows_of("spin_fraction"), *busy),
    )


def imbalance(stage: Stage) -> Told | None:
    """The busiest thread decides."""
    if not _waits(stage) or serial_share(stage) is not None:
        return None
    busy = _busy(stage)
    total = sum(row.value or 0.0 for row in busy)
    if len(busy) < 2 or not total:
        return None
    most = max(row.value or 0.0 for row in busy) * len(busy) / total
    if most < IMBALANCE_MIN:
        return None
    return Told(
        f"Its work is unevenly divided: the busiest thread works {most:.2f} times the mean.",
        (*stage.rows_of("spin_fraction"), *busy),
    )


def even_waiting(stage: Stage) -> Told | None:
    """All threads wait alike."""
    if not _waits(stage) or serial_share(stage) is not None or imbalance(stage) is not None:
        return None
    return Told(
        "Its threads wait for each other, all about alike: barriers come too often for the work "
        "between them.",
        stage.rows_of("spin_fraction", "busy_time", "wait_time"),
    )


def parallel_efficiency(stage: Stage) -> Told | None:
    """CPU time against wall time x threads: CPUs that stand idle."""
    wall = stage.time()
    cpu = next(iter(stage.rows_of("cpu_time", "task-clock")), None)
    threads = stage.row("threads")
    if wall is None or cpu is None or threads is None or not wall.value or crowded(stage):
        return None
    count = threads.value or 1.0
    if count < 2 or (wall.metric == "time") != (cpu.scope == "roi"):
        return None
    efficiency = (cpu.value or 0.0) / (wall.value * count)
    if efficiency > EFFICIENCY_MAX:
        return None
    return Told(
        f"Of {count:.0f} threads' time only {share_text(efficiency)} is CPU time: threads sleep, "
        "in serial parts or for lack of work.",
        (wall, cpu, threads),
    )


def ipc_of_spinning(stage: Stage) -> Told | None:
    """An IPC that threads polluted which spin."""
    ipc, spin = stage.row("IPC"), stage.row("spin_fraction")
    if ipc is None or ipc.provenance != "measured":
        return None  # a modelled IPC is of working time alone
    waits = _wait_functions(stage)
    share = sum(row.value or 0.0 for row in waits) if spin is None else spin.value or 0.0
    if share >= WAITING_MIN:
        return Told(_SPINNING, (ipc, *((spin,) if spin else ()), *waits))
    return _ipc_without_cause(stage, ipc) if spin is None else None


def _ipc_without_cause(stage: Stage, ipc: Row) -> Told | None:
    """A low IPC on several busy CPUs that no counted misses explain."""
    busy, lost = cpus_busy(stage), miss_share(stage)
    if (ipc.value or 0.0) > LOW_IPC or lost is None or lost > MISSES_MAX:
        return None
    if busy is None or busy <= 1:
        return None
    return Told(
        f"{_SPINNING} Several CPUs were busy all the time, and all counted misses together can "
        "explain only a small part of the cycles.",
        (ipc, *stage.rows_of("cycles", "instructions", "cache-misses", "branch-misses"),
         *filter(None, (stage.time(),))),
        "likely",
    )  # fmt: skip


_SPINNING = (
    "Its low IPC is that of threads that spin while they wait (a pause takes 40 to 140 cycles and "
    "retires one instruction), not that of its kernel: IPC says nothing here about the code."
)


def _waits(stage: Stage) -> bool:
    """Whether threads wait, of their own doing."""
    waiting = stage.value("spin_fraction") or 0.0
    if stage.threads < 2 or waiting < WAITING_MIN:
        return False
    return crowded(stage) is None and oversubscribed(stage) is None


def _busy(stage: Stage) -> tuple[Row, ...]:
    names = stage.index.by_thread(stage.variant, "busy_time")
    rows = (stage.index.row(stage.variant, "busy_time", thread=name) for name in names)
    return tuple(row for row in rows if row is not None)


def _wait_functions(stage: Stage) -> tuple[Row, ...]:
    """Own shares of functions that are known to wait."""
    return tuple(
        row
        for name, row in stage.functions()
        if row.metric == "wait_self_share" or is_wait_name(name)
    )
