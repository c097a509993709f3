"""The text of a comparison: the answer first, then times with intervals, then counters, phases."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import RenderableType
from rich.text import Text

from moe_prof.analysis.comparison import Comparison
from moe_prof.analysis.comparison_rows import pairing_text
from moe_prof.render.fitted import Column, FittedTable
from moe_prof.render.tables import MISSING
from moe_prof.stats import Interval
from moe_prof.units import count_text, digits_text, time_text

_STYLES = {"faster": "green", "slower": "bold red", "same": "", "too noisy": "yellow"}
MOST_COUNTS = 24
"""Counters and phases of a pair in the text; JSON has all."""


def comparison_view(
    comparisons: Sequence[Comparison], *, margin: float, remarks: Sequence[str]
) -> list[RenderableType]:
    """All sections, to be printed within 60 columns or more."""
    view: list[RenderableType] = [_answer(one) for one in comparisons]
    if any(one.old_s is not None or one.new_s is not None for one in comparisons):
        view += ["", comparison_table(comparisons), *_notes(comparisons, margin, remarks)]
    else:  # counts alone, of an emulator or of imported counters
        view += map(Text, remarks)
    for one in comparisons:
        if any(count.metric != "cpu_time" for count in one.counts):
            view += ["", Text(f"{_label(one)}: counters and phases, no intervals, so no verdict")]
            view.append(_counts(one))
            if len(one.counts) > MOST_COUNTS:
                view.append(Text(f"{len(one.counts) - MOST_COUNTS} more in --format json"))
    return view


def _answer(one: Comparison) -> Text:
    """``packed is slower: 1.031 of the old time (1.024 .. 1.039)``."""
    subject = (
        one.pair.new if one.pair.old == one.pair.new else f"{one.pair.new} over {one.pair.old}"
    )
    place = f"{one.pair.new_scenario}: " if one.pair.new_scenario else ""
    if one.ratio is None:
        return Text(f"{place}{subject}: no ratio: {one.reason}")
    interval = one.ratio.interval
    value = f"{ratio_text(interval.value)} of the old time"
    if one.verdict is None:
        return Text(f"{place}{subject}: {value}; no verdict: {one.reason}")
    words = "too noisy to say" if one.verdict == "too noisy" else one.verdict
    text = Text(f"{place}{subject}: ")
    text.append(words, style=_STYLES[one.verdict])
    text.append(f", {value} ({_range(interval)})")
    return text


def ratio_text(value: float) -> str:
    """Three decimals around 1, where a percent matters."""
    return f"{value:.3f}" if 0.1 <= value < 10 else digits_text(value)


def answer_text(one: Comparison) -> str:
    """The same in plain text."""
    return _answer(one).plain


def comparison_table(comparisons: Sequence[Comparison]) -> FittedTable:
    """One line a pair: times, ratio, interval, effect, verdict."""
    titles = ("old", "new", "new / old", "95 % interval", "effect")
    table = FittedTable("variant", (*map(Column, titles), Column("verdict", "left")))
    for one in comparisons:
        ratio = one.ratio
        table.add_row(
            _label(one),
            MISSING if one.old_s is None else time_text(one.old_s),
            MISSING if one.new_s is None else time_text(one.new_s),
            MISSING if ratio is None else ratio_text(ratio.interval.value),
            MISSING if ratio is None else _range(ratio.interval),
            MISSING if ratio is None else f"{ratio.effect:+.2f}",
            one.verdict or "none",
        )
    return table


def _label(one: Comparison) -> str:
    scenario = one.pair.new_scenario
    return f"{scenario} {one.pair.label}" if scenario else one.pair.label


def _notes(
    comparisons: Sequence[Comparison], margin: float, remarks: Sequence[str]
) -> list[RenderableType]:
    percent = f"{100 * margin:g} %"
    lines = [
        f"{how} ({', '.join(dict.fromkeys(names))})" for how, names in _by_pairing(comparisons)
    ]
    lines.append(
        f"same: the whole interval is within {percent} of 1; too noisy: it is not, and contains 1; "
        "effect: +1 always slower, -1 always faster"
    )
    drift = next((one.drift for one in comparisons if one.drift is not None), None)
    if drift is not None:
        lines.append(
            f"scalar took {ratio_text(drift)} of its old time: what the machine did between the "
            "runs; intervals of the others are stretched by it"
        )
    elif any(one.ratio and not one.ratio.paired for one in comparisons):
        lines.append(
            "two runs differ by more than their samples tell; to be sure, time both in one run: "
            "bench SCENARIO --variant NEW --vs OLD"
        )
    if any(one.verdict == "too noisy" for one in comparisons):
        lines.append("to tell more: an idle machine, bench --processes 8, a longer --max-time")
    return [Text(line, style="dim") for line in (*lines, *remarks)]


def _by_pairing(comparisons: Sequence[Comparison]) -> list[tuple[str, list[str]]]:
    found: dict[str, list[str]] = {}
    for one in comparisons:
        if one.ratio is not None:
            found.setdefault(pairing_text(one), []).append(one.pair.label)
    return list(found.items())


def _counts(one: Comparison) -> FittedTable:
    table = FittedTable("metric", [Column(title) for title in ("old", "new", "new / old")])
    for count in one.counts[:MOST_COUNTS]:
        name = count.metric if count.phase is None else f"{count.metric} {count.phase}"
        form = time_text if count.unit == "s" else count_text
        mark = " s" if count.provenance == "simulated" else ""
        table.add_row(name, form(count.old), form(count.new), ratio_text(count.ratio) + mark)
    return table


def _range(interval: Interval) -> str:
    if interval.low is None or interval.high is None:
        return MISSING
    return f"{ratio_text(interval.low)} .. {ratio_text(interval.high)}"
