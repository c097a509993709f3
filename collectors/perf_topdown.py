"""Top-down nodes of level 1 and 2 from ``perf stat`` readings: pure, readings in, nodes out.

Three kinds of input are understood:

* perf's own metrics: ``--topdown`` tables of every version, ``-M TopdownL1,TopdownL2`` (names
  ``tma_...``), AMD's ``PipelineL1`` and ``PipelineL2``, Arm's ``TopdownL1`` in percent of slots;
* Intel's slot counts (Ice Lake and later): ``slots`` with ``topdown-retiring`` and the like, and
  the per-core counts of older CPUs (``topdown-total-slots`` ...);
* AMD's dispatch counts (Zen 4 and 5), slots = 6 or 8 per cycle of ``ls_not_halted_cyc``.

Values are fractions of slots. Impossible ones are kept and marked ``out_of_bounds``, never clipped.

Source of the formulas: A. Yasin, "A Top-Down method for performance analysis and counters
architecture", ISPASS 2014; the kernel's ``tools/perf/Documentation/topdown.txt``; AMD PPR for
family 19h model 11h and for 1Ah, "Pipeline utilization", as in perf's ``amdzen4/pipeline.json``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from moe_prof.collectors.perf_reading import Reading, Report, take_apart
from moe_prof.collectors.perf_units import split_metric
from moe_prof.rows import Status

LEVEL1 = ("Retiring", "Bad_Speculation", "Frontend_Bound", "Backend_Bound", "SMT_Contention")
SUM_TOLERANCE = 0.05  # level-1 nodes are rounded and may come from different counter groups

_COUNTERPARTS: dict[str, str] = {
    "retiring": "Retiring",
    "bad_speculation": "Bad_Speculation", "bad_speculat": "Bad_Speculation",
    "frontend_bound": "Frontend_Bound", "fe_bound": "Frontend_Bound",
    "backend_bound": "Backend_Bound", "be_bound": "Backend_Bound",
    "smt_contention": "SMT_Contention",
    "light_operations": "Retiring.Light_Operations",
    "heavy_operations": "Retiring.Heavy_Operations",
    "branch_mispredicts": "Bad_Speculation.Branch_Mispredicts",
    "branch_mispredict": "Bad_Speculation.Branch_Mispredicts",
    "machine_clears": "Bad_Speculation.Machine_Clears",
    "fetch_latency": "Frontend_Bound.Fetch_Latency",
    "fetch_bandwidth": "Frontend_Bound.Fetch_Bandwidth",
    "memory_bound": "Backend_Bound.Memory_Bound",
    "core_bound": "Backend_Bound.Core_Bound",
    "retiring_fastpath": "Retiring.Fastpath",
    "retiring_microcode": "Retiring.Microcode",
    "bad_speculation_mispredicts": "Bad_Speculation.Branch_Mispredicts",
    "bad_speculation_pipeline_restarts": "Bad_Speculation.Pipeline_Restarts",
    "frontend_bound_latency": "Frontend_Bound.Fetch_Latency",
    "frontend_bound_bandwidth": "Frontend_Bound.Fetch_Bandwidth",
    "backend_bound_memory": "Backend_Bound.Memory_Bound",
    "backend_bound_cpu": "Backend_Bound.Core_Bound",
}  # fmt: skip
_DISPATCH_MASK = re.compile(
    r"de_no_dispatch_per_slot\.no_ops_from_frontend,cmask=(?P<width>0x[0-9a-f]{1,2}|[1-9]\d?)"
)
_ORDER = tuple(dict.fromkeys(_COUNTERPARTS.values()))

_Counts = Mapping[str, Reading]
_Key = tuple[object, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One node of the top-down tree at one place.

    Attributes:
        name: in TMA's spelling; AMD's own nodes (SMT_Contention, Retiring.Microcode) keep theirs.
        perf_name: what perf calls the metric, or the counts it was computed from.
        value: fraction of slots; None when missing.
        at: a reading that says where and when (PMU, scope, interval, block, line).
        note: why the value is missing or not to be trusted.
    """

    name: str
    perf_name: str
    value: float | None
    status: Status
    at: Reading
    note: str = ""

    @property
    def level(self) -> int:
        """1 or 2."""
        return self.name.count(".") + 1


def counterpart(metric: str) -> str | None:
    """The TMA name of a perf metric (``tma_retiring``, ``frontend bound``); None for others."""
    name = metric.strip().lower().replace(" ", "_").removeprefix("tma_")
    return _COUNTERPARTS.get(name.replace("_by_", "_").replace("_from_", "_"))


def nodes(report: Report, *, slots_per_cycle: int | None = None) -> tuple[Node, ...]:
    """All nodes of level 1 and 2, by place, in TMA's order.

    Intel's counts are preferred to figures that perf rounded, but not to its ``tma_`` formulas,
    which correct for a CPU's peculiarities. AMD's counts stand in only where perf printed no
    metric: perf computes each within one counter group.

    Args:
        slots_per_cycle: dispatch width for AMD's counts; else it follows from the event names.
    """
    groups: dict[_Key, list[Reading]] = {}
    for reading in report.readings:
        groups.setdefault(_place(reading), []).append(reading)
    found: list[Node] = []
    for readings in groups.values():
        found.extend(_group_nodes(readings, slots_per_cycle))
    return tuple(found)


def _group_nodes(readings: list[Reading], slots_per_cycle: int | None) -> list[Node]:
    printed = _printed(readings)
    counts = _counts(readings)
    exact = {node.name: node for node in (*_from_slots(counts), *_from_core_slots(counts))}
    rest = {node.name: node for node in _from_dispatch(counts, slots_per_cycle)}
    chosen = []
    for name in _ORDER:
        own = printed.get(name)
        ranked = [own, exact.get(name), rest.get(name)]
        if own is not None and not own.perf_name.startswith("tma_"):
            ranked = [exact.get(name), own, rest.get(name)]
        candidates = [node for node in ranked if node is not None]
        with_value = [node for node in candidates if node.value is not None]
        chosen += (with_value or candidates)[:1]
    return _checked_sum(chosen)


def _printed(readings: Iterable[Reading]) -> dict[str, Node]:
    metrics = [reading for reading in readings if reading.metric_unit]
    titles = {reading.metric_unit.strip() for reading in metrics}
    legacy = any(" " in title and counterpart(title) for title in titles)
    found: dict[str, Node] = {}
    for reading in metrics:
        metric = split_metric(reading.metric_unit)
        name = counterpart(metric.name)
        if name is None or (name in found and found[name].value is not None):
            continue
        percent = metric.unit.startswith(("%", "percent of")) or legacy
        value = reading.metric_value
        if value is not None and percent:
            value /= 100
        found[name] = _node(name, metric.name, value, [reading])
    return found


def _from_slots(counts: _Counts) -> list[Node]:
    """Intel from Ice Lake on; level 2 from Sapphire Rapids on."""
    slots = counts.get("slots") or counts.get("topdown.slots")
    if slots is None:
        return []
    pairs = (
        ("Retiring", "topdown-retiring", "topdown-heavy-ops",
         "Retiring.Heavy_Operations", "Retiring.Light_Operations"),
        ("Bad_Speculation", "topdown-bad-spec", "topdown-br-mispredict",
         "Bad_Speculation.Branch_Mispredicts", "Bad_Speculation.Machine_Clears"),
        ("Frontend_Bound", "topdown-fe-bound", "topdown-fetch-lat",
         "Frontend_Bound.Fetch_Latency", "Frontend_Bound.Fetch_Bandwidth"),
        ("Backend_Bound", "topdown-be-bound", "topdown-mem-bound",
         "Backend_Bound.Memory_Bound", "Backend_Bound.Core_Bound"),
    )  # fmt: skip
    found = []
    for parent, event, part, first, rest in pairs:
        if event not in counts:
            continue
        whole = counts[event]
        found.append(_ratio(parent, f"{event} / slots", [whole], slots, lambda w: w))
        if part in counts:
            split = counts[part]
            found.append(_ratio(first, f"{part} / slots", [split], slots, lambda p: p))
            found.append(
                _ratio(rest, f"({event} - {part}) / slots", [whole, split], slots, _difference)
            )
    return found


def _from_core_slots(counts: _Counts) -> list[Node]:
    """Intel before Ice Lake: per-core counts."""
    total = counts.get("topdown-total-slots")
    names = ("slots-issued", "slots-retired", "fetch-bubbles", "recovery-bubbles")
    parts = [counts.get(f"topdown-{name}") for name in names]
    if total is None or any(part is None for part in parts):
        return []
    used = [part for part in parts if part is not None]
    text = "topdown-slots-*, topdown-*-bubbles / topdown-total-slots"
    formulas: tuple[tuple[str, Callable[..., float]], ...] = (
        ("Retiring", lambda issued, retired, fetch, recovery: retired),
        ("Bad_Speculation", lambda issued, retired, fetch, recovery: issued - retired + recovery),
        ("Frontend_Bound", lambda issued, retired, fetch, recovery: fetch),
    )
    found = [_ratio(name, text, used, total, formula) for name, formula in formulas]
    values = [node.value for node in found if node.value is not None]
    rest = 1 - sum(values) if len(values) == len(formulas) else None
    found.append(_node("Backend_Bound", "1 - the other three", rest, [total, *used]))
    return found


def _from_dispatch(counts: _Counts, slots_per_cycle: int | None) -> list[Node]:
    """AMD Zen 4 and later."""
    cycles = counts.get("ls_not_halted_cyc")
    width = slots_per_cycle or _dispatch_width(counts)
    if cycles is None or width is None:
        return []
    slots = replace(cycles, value=None if cycles.value is None else cycles.value * width)
    under = "de_no_dispatch_per_slot."
    front, back = f"{under}no_ops_from_frontend", f"{under}backend_stalls"
    latency = f"{front},cmask=0x{width:x}"
    retired, dispatched = "ex_ret_ops", "de_src_op_disp.all"
    restarts = "bp_redirects.resync" if width == 8 else "resyncs_or_nc_redirects"
    loads, stalled = "ex_no_retire.load_not_complete", "ex_no_retire.not_complete"
    wrong, micro = "ex_ret_brn_misp", "ex_ret_ucode_ops"
    formulas: tuple[tuple[str, tuple[str, ...], Callable[..., float]], ...] = (
        ("Retiring", (retired,), lambda r: r),
        ("Bad_Speculation", (dispatched, retired), _difference),
        ("Frontend_Bound", (front,), lambda f: f),
        ("Backend_Bound", (back,), lambda b: b),
        ("SMT_Contention", (f"{under}smt_contention",), lambda s: s),
        ("Retiring.Fastpath", (retired, micro), _difference),
        ("Retiring.Microcode", (micro,), lambda m: m),
        ("Bad_Speculation.Branch_Mispredicts", (dispatched, retired, wrong, restarts),
         lambda d, r, w, p: (d - r) * _share(w, w + p)),
        ("Bad_Speculation.Pipeline_Restarts", (dispatched, retired, wrong, restarts),
         lambda d, r, w, p: (d - r) * _share(p, w + p)),
        ("Frontend_Bound.Fetch_Latency", (latency,), lambda c: width * c),
        ("Frontend_Bound.Fetch_Bandwidth", (front, latency), lambda f, c: f - width * c),
        ("Backend_Bound.Memory_Bound", (back, loads, stalled),
         lambda b, lo, st: b * _share(lo, st)),
        ("Backend_Bound.Core_Bound", (back, loads, stalled),
         lambda b, lo, st: b * (1 - _share(lo, st))),
    )  # fmt: skip
    found = []
    for name, events, formula in formulas:
        used = [counts[event] for event in events if event in counts]
        if len(used) == len(events):
            text = f"{', '.join(events)} / ({width} x ls_not_halted_cyc)"
            found.append(_ratio(name, text, used, slots, formula))
    return found


def _dispatch_width(counts: _Counts) -> int | None:
    for name in counts:
        found = _DISPATCH_MASK.fullmatch(name)
        if found:
            return int(found["width"], 0)
    if "bp_redirects.resync" in counts:
        return 8
    return 6 if "resyncs_or_nc_redirects" in counts else None


def _ratio(
    name: str, text: str, parts: list[Reading], slots: Reading, formula: Callable[..., float]
) -> Node:
    values = [part.value for part in parts]
    value: float | None = None
    if slots.value and all(number is not None for number in values):
        value = formula(*values) / slots.value
    return _node(name, text, value, [*parts, slots])


def _node(name: str, text: str, value: float | None, used: list[Reading]) -> Node:
    """A node with the status that its readings and its value imply."""
    running = [r.running_pct for r in used if r.running_pct is not None]
    at = replace(used[0], running_pct=min(running, default=None))
    if value is None:
        missing = next((r for r in used if r.status not in ("ok", "multiplexed")), None)
        status: Status = missing.status if missing is not None else "not_counted"
        words = status.replace("_", " ")
        event = missing.event if missing is not None else ""
        note = f"{event}: {words}" if event else words
        return Node(name=name, perf_name=text, value=None, status=status, at=at, note=note)
    if not 0 <= value <= 1:
        note = f"{100 * value:.1f} % of slots is impossible"
        return Node(
            name=name, perf_name=text, value=value, status="out_of_bounds", at=at, note=note
        )
    multiplexed = at.running_pct is not None and at.running_pct < 100
    status = "multiplexed" if multiplexed else "ok"
    return Node(name=name, perf_name=text, value=value, status=status, at=at)


def _checked_sum(found: list[Node]) -> list[Node]:
    """Mark level 1 when it does not add up to the whole."""
    top = [node for node in found if node.name in LEVEL1]
    values = [node.value for node in top if node.value is not None]
    if len(values) < 4 or len(values) < len(top) or abs(sum(values) - 1) <= SUM_TOLERANCE:
        return found
    note = f"level 1 adds up to {100 * sum(values):.1f} % of slots"
    return [
        replace(node, status="out_of_bounds", note=f"{node.note}; {note}" if node.note else note)
        if node in top
        else node
        for node in found
    ]


def _counts(readings: Iterable[Reading]) -> dict[str, Reading]:
    found: dict[str, Reading] = {}
    for reading in readings:
        if reading.event:
            base = take_apart(reading.event).base
            if base not in found or found[base].value is None:
                found[base] = reading
    return found


def _place(reading: Reading) -> _Key:
    pmu = None if reading.pmu == "cpu" else reading.pmu
    return (
        reading.block, reading.summary, reading.time_s, reading.scope, reading.thread,
        reading.cgroup, pmu,
    )  # fmt: skip


def _difference(whole: float, part: float) -> float:
    return whole - part


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0
