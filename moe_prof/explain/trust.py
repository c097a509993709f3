"""Rules on one stage: what its figures cannot be relied on for."""

from __future__ import annotations

from moe_prof.analysis.fastest import time_half_width
from moe_prof.explain.costs import cpus_busy
from moe_prof.explain.finding import Told
from moe_prof.explain.stage import IMPORT, OWN_SHARES, Stage
from moe_prof.rows import Row
from moe_prof.units import share_text

SHORTEST_PROCESS_S = 0.1
"""Start of a process, page faults and the first pass through caches take milliseconds."""
SHORTEST_FORWARD_S = 20e-6
"""At 999 Hz a sample comes every millisecond: one in fifty forwards of this length gets one."""
FEW_SAMPLES = 100
WHOLE_PCT = 99.5
WIDE_INTERVAL = 0.1
SPECULATION_EDGE = 0.1
_COUNTS = ("cycles", "instructions", "branches", "cache-references")
_DOUBTS = ("scaled to fit", "uncertain", "explain only", "would fill", "is not what ran")
_SHOWN = 4


def too_short(stage: Stage) -> Told | None:
    """Too little time to count or to sample."""
    samples = stage.row("samples")
    if samples is not None and (samples.value or 0.0) < FEW_SAMPLES:
        text = (
            f"Its profile has {samples.value:.0f} samples: shares below "
            f"{share_text(2 / (samples.value or 1.0) ** 0.5)} cannot be told from each other."
        )
        return Told(text, (samples,))
    time = stage.time()
    if time is None or time.value is None:
        return None
    if time.metric != "time" and time.value < SHORTEST_PROCESS_S:
        text = "The whole process is too short: what was counted is mostly its start and exit."
        return Told(text, (time,))
    if time.metric == "time" and time.value < SHORTEST_FORWARD_S:
        return Told(
            "One forward is too short to sample or to interrupt: only sums over many forwards, or "
            "timers inside the code, can say where its time goes.",
            (time,),
        )
    return None


def whole_process(stage: Stage) -> Told | None:
    """Counts that hold more than the region of interest."""
    rows = [row for row in stage.rows_of(*_COUNTS) if row.scope in ("process", "system")]
    meant = not stage.scenario and stage.manifest.command != IMPORT  # a program as a whole
    if not rows or meant:
        return None
    return Told(
        "Its counts are of the whole process: preparing and packing weights, the start and the "
        "exit of threads are in them, and every ratio of them is diluted by that.",
        tuple(rows[:_SHOWN]),
    )


def summed_cycles(stage: Stage) -> Told | None:
    """Cycles of all threads beside wall time."""
    busy, time = cpus_busy(stage), stage.time()
    if busy is None or busy <= 1 or time is None:
        return None
    return Told(
        "Its cycles are summed over all threads: there are more in a second than any clock ticks, "
        "so cycles are no wall time and cannot be divided by the frequency to get one.",
        (*stage.rows_of("cycles"), time),
    )


def multiplexed(stage: Stage) -> Told | None:
    """Counters that shared the hardware."""
    rows = [row for row in stage.rows if _was_multiplexed(row) and row.variant == stage.variant]
    if not rows:
        return None
    least = min((row.mux_pct for row in rows if row.mux_pct is not None), default=None)
    part = f", the least {least:.0f} %," if least is not None else ""
    return Told(
        f"Its counters took turns on the hardware{part} and were scaled up: phases that came while "
        "one did not count are missing in it, and ratios of two can be far off.",
        tuple(rows[:_SHOWN]),
    )


def modelled_edge(stage: Stage) -> Told | None:
    """Modelled values at the edge of the model's validity."""
    rows = [row for row in stage.rows if row.variant == stage.variant and _is_doubtful(row)]
    if not rows:
        return None
    return Told(
        "Modelled values are at the edge of the model's validity and carry no verdict: the "
        "simulated branch predictor is simpler than a real one, and what the known demands do not "
        "explain is not divided further.",
        tuple(rows[:_SHOWN]),
    )


def noisy(stage: Stage) -> Told | None:
    """A time that scatters."""
    width = time_half_width(stage.index, stage.variant)
    time = stage.row("time")
    if width is None or time is None or width < WIDE_INTERVAL:
        return None
    return Told(
        f"Its time scatters: its 95 % interval is wider than +-{share_text(WIDE_INTERVAL)}, so "
        "that smaller differences to others say nothing.",
        (time, *stage.rows_of("time_ci_low", "time_ci_high")),
    )


def impossible(stage: Stage) -> Told | None:
    """Values that cannot be."""
    rows = [
        row
        for row in stage.rows
        if row.variant == stage.variant and row.status == "out_of_bounds" and row.value is not None
        if row.metric != "threads" and row.metric not in OWN_SHARES
    ]
    if not rows:
        return None
    return Told("Some of its values are impossible and were kept as printed.", tuple(rows[:_SHOWN]))


def wrong_result(stage: Stage) -> Told | None:
    """A result that failed its check."""
    row = stage.index.row(stage.variant, "rel_rmse")
    if row is None or row.status != "out_of_bounds":
        return None
    text = "It computes a wrong result, so none of its figures say anything about the layer."
    return Told(text, (row,))


def _was_multiplexed(row: Row) -> bool:
    if row.value is None:
        return False
    return row.status == "multiplexed" or (row.mux_pct is not None and row.mux_pct < WHOLE_PCT)


def _is_doubtful(row: Row) -> bool:
    if row.collector != "model":
        return False
    if row.metric == "Bad_Speculation" and (row.value or 0.0) >= SPECULATION_EDGE:
        return True
    return any(words in row.source for words in _DOUBTS)
