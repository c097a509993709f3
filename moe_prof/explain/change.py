"""Rules on two stages, before and after: ratios that mislead, and what makes them incomparable."""

from __future__ import annotations

from moe_prof.explain.costs import cpus_busy, miss_share
from moe_prof.explain.finding import Told
from moe_prof.explain.stage import IMPORT, Stage
from moe_prof.rows import Row
from moe_prof.units import count_text, digits_text, share_text

FEWER_INSTRUCTIONS = 1.5
MORE_INSTRUCTIONS = 1.1
WAITING_IPC = 0.5
"""Code that computes retires more than this a cycle unless it stalls; pauses about 0.05 to 0.3."""
LONG_WAITING = 0.25
LOW_IPC = 0.7
FAR_LOWER_IPC = 0.5
RATE_ROSE = 1.1
CLOCK_CHANGED = 0.03
IPC_FELL = 0.9
WHERE_COUNTED = "see where the remaining ones are: 'moe-prof counters' and 'hotspots'"
"""Advice where instructions were counted and nothing was timed: no bound can be told then."""
_BUILD_VARIABLES = ("MOE_PROF_ISA", "CXX", "CXXFLAGS", "LD_PRELOAD")
_MACHINE_FACTS = ("model_name", "kernel", "usable_cpus", "microarchitecture_basis")


def vectorised(before: Stage, after: Stage) -> Told | None:
    """Fewer instructions for the same work, and what binds now."""
    old, new = before.value("instructions"), after.value("instructions")
    if not old or not new or old < FEWER_INSTRUCTIONS * new or not _same_scope(before, after):
        return None
    if _is_waiting_loop(after, before):
        return None  # what went away was waiting
    memory, was = (s.value("Backend_Bound.Memory_Bound") for s in (after, before))
    rows = _both(before, after, "instructions")
    text = (
        f"Each instruction does more: {share_text(1 - new / old)} fewer of them than in "
        f"{before.label} for the same work."
    )
    if memory is not None and was is not None and memory >= 0.25 and memory > was:
        text += " It is now bound by memory, which is what remains once arithmetic is cheap."
        rows += _both(before, after, "Backend_Bound.Memory_Bound")
    return Told(
        text, rows, "certain" if all(r.provenance == "measured" for r in rows) else "likely",
        WHERE_COUNTED if after.time() is None else "",
    )  # fmt: skip


def rate_rose_misses_fell(before: Stage, after: Stage) -> Told | None:
    """A miss rate that rose because its divisor fell."""
    for misses, references, rate in _RATES:
        old, new = before.value(rate), after.value(rate)
        was, now = before.value(misses), after.value(misses)
        if None in (old, new, was, now) or not old or not was:
            continue
        if (new or 0.0) < RATE_ROSE * old or (now or 0.0) >= was:
            continue
        if not before.value(references) or not after.value(references):
            continue
        return Told(
            f"The {rate.replace('_', ' ')} rose from {share_text(old)} to {share_text(new)}, yet "
            f"misses fell from {count_text(was)} to {count_text(now or 0.0)}: there are fewer "
            f"references ({count_text(before.value(references) or 0.0)}, now "
            f"{count_text(after.value(references) or 0.0)}). The memory behaviour has improved.",
            _both(before, after, rate, misses, references),
        )
    return None


_RATES = (
    ("cache-misses", "cache-references", "cache_miss_rate"),
    ("branch-misses", "branches", "branch_miss_rate"),
    ("l1-dcache-load-misses", "l1-dcache-loads", "l1d_miss_rate"),
    ("llc-load-misses", "llc-loads", "llc_miss_rate"),
)


def instructions_of_waiting(before: Stage, after: Stage) -> Told | None:
    """More instructions that are waiting, since the added ones run at a waiting loop's IPC."""
    old, new = before.value("instructions"), after.value("instructions")
    if not old or not new or new < MORE_INSTRUCTIONS * old or not _is_waiting_loop(before, after):
        return None
    added_ipc = _added_ipc(before, after)
    same = _same_path(before, after)
    if same is False or added_ipc is None:
        return None
    condition = "" if same else " if its path did not change"
    return Told(
        f"It executes {share_text(new / old - 1)} more instructions than {before.label}, but not "
        f"more work{condition}: the added ones run at {digits_text(added_ipc)} a cycle, which is a "
        "waiting loop on a busy or shared machine, not arithmetic.",
        _both(before, after, "instructions", "cycles", "IPC", *_times(before, after)),
        "certain" if same and after.value("spin_fraction") else "likely",
    )


def ipc_fell_while_spinning(before: Stage, after: Stage) -> Told | None:
    """A low IPC beside fewer instructions and more cycles, on several busy CPUs."""
    old, new = before.value("IPC"), after.value("IPC")
    if not old or new is None or new > LOW_IPC or new > FAR_LOWER_IPC * old:
        return None
    fewer = (after.value("instructions") or 0.0) < (before.value("instructions") or 0.0)
    more = (after.value("cycles") or 0.0) > (before.value("cycles") or 0.0)
    busy = cpus_busy(after)
    if not fewer or not more or busy is None or busy <= 1 or miss_share(after) is not None:
        return None
    return Told(
        f"IPC fell from {digits_text(old)} to {digits_text(new)} while there are fewer "
        f"instructions and more cycles than in {before.label}, on several CPUs: the cycles of "
        "threads that spin are counted in, so this IPC is not the kernel's. (Misses, not counted "
        "here, would tell waiting for memory apart.)",
        _both(before, after, "IPC", "instructions", "cycles"),
        "possible",
    )


def ipc_misleads(before: Stage, after: Stage) -> Told | None:
    """IPC that fell while the time fell too."""
    old, new = before.value("IPC"), after.value("IPC")
    was, now = before.time(), after.time()
    if not old or new is None or was is None or now is None or was.metric != now.metric:
        return None
    if new > IPC_FELL * old or not was.value or (now.value or 0.0) >= IPC_FELL * was.value:
        return None
    return Told(
        f"IPC fell from {digits_text(old)} to {digits_text(new)}, yet it is "
        f"{digits_text(was.value / (now.value or 1.0))} times as fast as {before.label}: fewer, "
        "larger instructions. IPC is no measure of progress here.",
        (*_both(before, after, "IPC", "instructions"), was, now),
    )


def clock_changed(before: Stage, after: Stage) -> Told | None:
    """Another clock, by calibration or by cycles over CPU time."""
    pairs = [(s.machine_row("ceiling_clock", "1"),) for s in (before, after)]
    old, new = ((row.value if row else None) for (row,) in pairs)
    rows = tuple(row for (row,) in pairs if row is not None)
    if old is None or new is None:
        old, new = _hz(before), _hz(after)
        rows = _both(before, after, "cycles", "task-clock")
    if not old or not new or abs(new / old - 1) < CLOCK_CHANGED:
        return None
    return Told(
        f"The clock changed by {share_text(new / old - 1)} between {before.label} and this run "
        "(another frequency, throttling or another machine): times differ by that much without "
        "any change of code; compare cycles.",
        rows,
    )


def other_conditions(before: Stage, after: Stage) -> Told | None:
    """Different seeds, builds, threads or machines."""
    if before.manifest.run_id == after.manifest.run_id:
        return None
    differing = _differences(before, after)
    rows = tuple(row for stage in (before, after) if (row := _any_row(stage)) is not None)
    old, new = before.row("threads"), after.row("threads")
    if old is not None and new is not None and old.value != new.value:
        differing.append(f"threads ({old.value:.0f}, now {new.value:.0f})")
        rows = (old, new)
    if not differing or not rows:
        return None
    return Told(
        f"It cannot be compared with {before.label} as it stands; they differ in "
        f"{', '.join(differing)}.",
        rows,
    )


def _differences(before: Stage, after: Stage) -> list[str]:
    old, new = before.manifest, after.manifest
    found: list[str] = []
    if IMPORT in (old.command, new.command):
        return found  # what was run elsewhere is not known
    if old.seed != new.seed:
        found.append(f"seed ({old.seed}, now {new.seed})")
    if old.moe_prof_version != new.moe_prof_version:
        found.append(f"version of moe_prof ({old.moe_prof_version}, now {new.moe_prof_version})")
    for name in _BUILD_VARIABLES:
        if old.environment.get(name) != new.environment.get(name):
            found.append(name)
    for name in _MACHINE_FACTS:
        if old.machine.get(name) != new.machine.get(name):
            found.append(f"the machine's {name.replace('_', ' ')}")
    compilers = [m.tools.get("compiler") or m.tools.get("c++") for m in (old, new)]
    if compilers[0] != compilers[1]:
        found.append("the compiler")
    return found


def _any_row(stage: Stage) -> Row | None:
    return stage.time() or next((row for row in stage.rows if row.value is not None), None)


def _hz(stage: Stage) -> float | None:
    cycles, clock = stage.row("cycles"), stage.row("task-clock")
    if cycles is None or clock is None or not clock.value or cycles.scope != clock.scope:
        return None
    return (cycles.value or 0.0) / clock.value or None


def _added_ipc(before: Stage, after: Stage) -> float | None:
    """Instructions a cycle of what came in addition; None where cycles did not rise."""
    old, new = before.value("instructions"), after.value("instructions")
    was, now = before.value("cycles"), after.value("cycles")
    if old is None or new is None or was is None or now is None or now <= was:
        return None
    return (new - old) / (now - was)


def _is_waiting_loop(before: Stage, after: Stage) -> bool:
    """Whether what the second has in addition are a waiting loop's instructions."""
    added_ipc, busy = _added_ipc(before, after), cpus_busy(after)
    if added_ipc is None or not 0 < added_ipc <= WAITING_IPC:
        return False
    return (busy is not None and busy > 1) or (after.value("spin_fraction") or 0.0) > LONG_WAITING


def _same_scope(before: Stage, after: Stage) -> bool:
    old, new = before.row("instructions"), after.row("instructions")
    return old is not None and new is not None and old.scope == new.scope


def _same_path(before: Stage, after: Stage) -> bool | None:
    """Whether both ran the same code; None when no row says."""
    for metric in ("microkernel", "isa"):
        old = before.index.text(before.variant, metric)
        new = after.index.text(after.variant, metric)
        if old and new:
            return old == new and before.variant == after.variant
    return None


def _times(before: Stage, after: Stage) -> tuple[str, ...]:
    names = {stage.metric for s in (before, after) if (stage := s.time()) is not None}
    return tuple(sorted(names))


def _both(before: Stage, after: Stage, *metrics: str) -> tuple[Row, ...]:
    return tuple(
        row for metric in metrics for stage in (before, after) for row in stage.rows_of(metric)
    )
