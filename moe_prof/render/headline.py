"""What a page says first: what disturbed the run, which variant is the fastest, what bounds it."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import RenderableType
from rich.text import Text

from moe_prof.analysis import crowding
from moe_prof.analysis.fastest import Leaders, leaders, too_early_to_tell
from moe_prof.analysis.query import RowIndex
from moe_prof.kernels import driver
from moe_prof.units import digits_text, share_text, time_text

BASELINE = "scalar"


def crowd_line(index: RowIndex, variants: Sequence[str]) -> list[RenderableType]:
    """The warning that belongs before all figures, where other programs disturbed them."""
    text = crowding.warning(index, variants)
    return [Text(f"Warning: {text}.", style="bold yellow")] if text else []


def oversubscribed_line(index: RowIndex, variants: Sequence[str]) -> list[RenderableType]:
    """What the exclamation mark behind a number of threads means."""
    names, source = [], ""
    for variant in variants:
        row = index.row(variant, "threads")
        if row is not None and row.status == "out_of_bounds":
            names.append(variant)
            source = row.source
    return [Text(f"{source}: {', '.join(names)}; use fewer --threads")] if names else []


def fastest_text(index: RowIndex, variants: Sequence[str]) -> str:
    """Which variant is the fastest, or which cannot be told apart; "" where nothing was timed."""
    found = leaders(index, variants)
    if found is None:
        return ""
    best, *equal = found.names
    time = f"{time_text(found.time_s)} a forward"
    if found.noisy:
        return f"Which is fastest cannot be told, too noisy: lowest median of {best}, {time}"
    if equal:
        why = too_early_to_tell(index, found.names)
        return f"Fastest, not separable: {', '.join(found.names)} ({time}; {why})"
    timed = sum(index.value(name, "time") is not None for name in variants)
    head = "Only" if timed == 1 < len(variants) else "Fastest here is"
    tail = " could be timed" if head == "Only" else ""
    return f"{head} {best}{tail}: {time}{_speedup(index, best)}"


def answer(index: RowIndex, variants: Sequence[str]) -> list[RenderableType]:
    """One paragraph: the fastest stage, what bounds it, what to try."""
    found = leaders(index, variants)
    if found is None:
        return [Text("No variant could be timed; the reasons stand below.")]
    return [Text("".join([fastest_text(index, variants), *_bound(index, variants, found)]))]


def _bound(index: RowIndex, variants: Sequence[str], found: Leaders) -> list[str]:
    """How near the ceilings the first of the leaders is, its cause and what to try."""
    best = found.names[0]
    words = []
    near = index.value(best, "roofline_fraction")
    if near is not None and len(found.names) == 1 and not found.noisy:
        ceiling = index.text(best, "roofline_ceiling") or "what this machine's ceilings allow"
        words.append(f", {share_text(near)} of {ceiling}")
    subject = "It" if len(found.names) == 1 else best
    cause = index.text(best, "verdict")
    words.append(
        f". What bounds {subject.replace('It', 'it')} could not be told: "
        if cause == "unknown"
        else f". {subject} is {cause.replace('_', ' ')}: "
    )
    words.append(_why_and_next(index, best))
    if cause == "unknown":
        words.append(_fastest_native(index, [name for name in variants if name != best]))
    return words


def _why_and_next(index: RowIndex, variant: str) -> str:
    evidence, advice = (index.text(variant, f"verdict_{part}") for part in ("evidence", "advice"))
    return f"{evidence}. Next: {advice}."


def _fastest_native(index: RowIndex, variants: Sequence[str]) -> str:
    """The verdict on the fastest C++ stage, where none on the fastest of all is known.

    Code that numba compiles can be neither counted by perf's driver nor simulated.
    """
    native = [name for name in variants if driver.runs(name)]
    found = leaders(index, native)
    cause = index.text(found.names[0], "verdict") if found is not None else ""
    if found is None or cause in ("", "unknown"):
        return ""
    name = found.names[0]
    return (
        f" The fastest C++ stage, {name} ({time_text(found.time_s)}), is "
        f"{cause.replace('_', ' ')}: {_why_and_next(index, name)}"
    )


def _speedup(index: RowIndex, variant: str) -> str:
    speedup = index.value(variant, "speedup")
    if speedup is None or variant == BASELINE:
        return ""
    return f", {digits_text(speedup)} times {BASELINE}"
