"""Rules on expert-parallel runs: what fusing saves, what stays exposed, who gets most rows."""

from __future__ import annotations

from moe_prof.ep.cases import FUSED, SMALL_OPS
from moe_prof.ep.result_rows import EXPOSED, EXPOSED_SHARE, MOVED, OVERLAP, SPEEDUP
from moe_prof.explain.finding import Told
from moe_prof.explain.stage import Stage
from moe_prof.rows import Row
from moe_prof.units import digits_text, share_text

WEIGHTS_MIN = 0.7
EXPOSED_MIN = 0.1
HOT_MIN = 1.5
LOST_MAX, WON_MIN = 1.0, 1.0


def fusing_result(stage: Stage) -> Told | None:
    """Whether the fused operator is the faster one, with its whole interval."""
    ratio = stage.row(SPEEDUP)
    low, high = (stage.row(f"{SPEEDUP}_ci_{end}") for end in ("low", "high"))
    if stage.variant != FUSED or ratio is None or low is None or high is None:
        return None
    value, rows = digits_text(ratio.value or 0.0), (ratio, low, high)
    if (high.value or 0.0) < LOST_MAX:
        return Told(f"Fusing loses here: it has {value} times the speed of small ops.", rows)
    if (low.value or 0.0) > WON_MIN:
        return Told(f"Fusing helps: it has {value} times the speed of small ops.", rows)
    return None


def weights_dominate(stage: Stage) -> Told | None:
    """Most bytes are weights, which fusing cannot save."""
    weights, moved = stage.machine_row("weight_bytes"), stage.row(MOVED)
    if stage.variant != SMALL_OPS or weights is None or moved is None or not moved.value:
        return None
    share = (weights.value or 0.0) / moved.value
    if not WEIGHTS_MIN <= share <= 1:
        return None
    return Told(
        f"Weights are {share_text(share)} of the bytes that small ops move, and every way must "
        f"read them: fusing can save {share_text(1 - share)} of the bytes at most.",
        (weights, moved),
        "likely",
    )


def exposed_communication(stage: Stage) -> Told | None:
    """A part of the call in which ranks wait or only move rows."""
    share = stage.row(EXPOSED_SHARE)
    if share is None or (share.value or 0.0) < EXPOSED_MIN or _oversubscribed(stage):
        return None
    hidden = stage.row(OVERLAP)
    words = "" if hidden is None else f" It hides {share_text(hidden.value)} of that of small ops."
    if stage.variant == SMALL_OPS:
        words = ""
    return Told(
        f"In {share_text(share.value)} of a call its ranks wait for each other's rows or only move "
        f"them: communication that no product hides.{words}",
        (share, *stage.rows_of(EXPOSED, OVERLAP)),
    )


def hot_expert(stage: Stage) -> Told | None:
    """Rows fall on few experts or ranks."""
    found = [_load(stage, phase) for phase in ("experts", "ranks")]
    told = [row for row in found if row is not None and (row.value or 0.0) >= HOT_MIN]
    if not told:
        return None
    parts = " and ".join(
        f"one of the {row.phase} gets {digits_text(row.value or 0.0)} times the mean rows"
        for row in told
    )
    slow = any(row.phase == "ranks" for row in told)
    end = "; its rank decides the time, the others wait" if slow else ""
    return Told(f"Routing is uneven: {parts}{end}.", tuple(told))


def waiting_for_rank(stage: Stage) -> Told | None:
    """All others wait for the same rank."""
    if _oversubscribed(stage):
        return None
    ranks = int((row.value if (row := stage.machine_row("ranks")) else None) or 1)
    if ranks < 3:
        return None
    waits = {
        peer: [row for row in stage.rows if row.metric == f"wait_for_rank_{peer}" and row.value]
        for peer in range(ranks)
    }
    sums = {peer: sum(row.value or 0.0 for row in rows) for peer, rows in waits.items()}
    total, worst = sum(sums.values()), max(sums, key=lambda peer: sums[peer])
    if not total or sums[worst] < 2 * total / ranks:
        return None
    return Told(
        f"Ranks wait mostly for rank {worst}: {share_text(sums[worst] / total)} of all waiting.",
        tuple(waits[worst]),
    )


def _load(stage: Stage, phase: str) -> Row | None:
    row = stage.index.row("", "load_max_over_mean", phase=phase)
    return row if row is not None and row.value is not None else None


def _oversubscribed(stage: Stage) -> bool:
    row = stage.row("threads")
    return row is not None and row.status == "out_of_bounds"
