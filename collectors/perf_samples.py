"""From samples of perf to a profile: threads named, clocks in seconds, one event.

A period is the number of events that a sample stands for. Clock events count nanoseconds, so their
weights become seconds. Different events in one recording are never added.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from moe_prof.collectors.perf_script import ScriptFrame, ScriptSample
from moe_prof.collectors.stacks import UNKNOWN, Frame, Profile, Stack, merged
from moe_prof.errors import UnavailableError
from moe_prof.rows import Scope

NAME = "perf_record"
CLOCKS = ("cpu-clock", "task-clock")


def profile(samples: Sequence[ScriptSample], *, scope: Scope, notes: Sequence[str] = ()) -> Profile:
    """The samples of one event, the one with most samples, as weighted stacks.

    Raises:
        UnavailableError: there is not one sample.
    """
    events = Counter(sample.event for sample in samples)
    if not events:
        raise UnavailableError(
            "perf took no sample: what was sampled is too short; make it longer (a larger "
            "scenario, --min-time)"
        )
    event = events.most_common(1)[0][0]
    said = list(notes)
    if len(events) > 1:
        others = ", ".join(f"{name} ({count})" for name, count in events.items() if name != event)
        said.append(f"samples of {event}; samples of other events are left out: {others}")
    chosen = [sample for sample in samples if sample.event == event]
    clock = plain_event(event) in CLOCKS
    has_periods = all(sample.period is not None for sample in chosen)
    unit = "samples"
    if has_periods:
        unit = "s" if clock else plain_event(event)
    labels = thread_labels(chosen)
    stacks = merged(
        Stack(
            frames=frames(sample.frames),
            weight=_weight(sample, clock=clock, has_periods=has_periods),
            samples=1,
            thread=labels[sample.tid],
        )
        for sample in chosen
    )
    return Profile(NAME, event, unit, stacks, "measured", scope, tuple(said))


def plain_event(event: str) -> str:
    """``cycles`` of ``cycles:u``, ``cpu_core/cycles/u`` and ``cycles:Pu``."""
    inner = event.split("/")[1] if event.count("/") == 2 else event
    return inner.partition(":")[0]


def frames(found: Iterable[ScriptFrame]) -> tuple[Frame, ...]:
    """Frames outermost first, unresolved ones named by nothing."""
    outward = [
        Frame(
            function=frame.symbol or UNKNOWN,
            module=frame.dso or "",
            address=frame.address,
            inlined=frame.inlined,
        )
        for frame in found
    ]
    return tuple(reversed(outward))


def thread_labels(samples: Iterable[ScriptSample]) -> dict[int, str]:
    """A label by thread id: numbers from 0, the main thread, in the order of their start.

    Threads of several processes carry command and number instead.
    """
    seen = {sample.tid: sample for sample in samples}
    processes = {sample.pid for sample in seen.values()}
    if len(processes) > 1:
        return {tid: f"{sample.comm} {tid}" for tid, sample in seen.items()}
    first = 1 if None not in processes and not processes & set(seen) else 0
    return {tid: str(index) for index, tid in enumerate(sorted(seen), first)}


def _weight(sample: ScriptSample, *, clock: bool, has_periods: bool) -> float:
    if not has_periods or sample.period is None:
        return 1.0
    return sample.period * 1e-9 if clock else float(sample.period)
