"""The first session against each later one: ratios with intervals and verdicts."""

from __future__ import annotations

from moe_prof.analysis.comparison import Comparison, Side, compare, pairs_between
from moe_prof.analysis.decision import MARGIN
from moe_prof.analysis.differences import differences, identity
from moe_prof.errors import UsageError
from moe_prof.render.compare_view import answer_text, comparison_table
from moe_prof.report.material import Material, Source
from moe_prof.report.parts import Context, Missing, Part, Table, table_of


def make(material: Material) -> Context | Missing:
    """A part for each later session; runs that differ in their inputs are not compared."""
    first, *others = material.sources
    if not others:
        return Missing("one session is compared with none; name an earlier one before it")
    made = [part for source in others if (part := _part(first, source)) is not None]
    return {"parts": made} if made else Missing("no two sessions timed the same variants")


def _part(old: Source, new: Source) -> Part | None:
    before, after = (Side(s.session.manifest.run_id, s.rows) for s in (old, new))
    try:
        pairs = pairs_between(before, after)
    except UsageError:  # they have nothing in common
        return None
    found = [one for one in compare(before, after, pairs) if one.ratio is not None]
    if not found:
        return None
    title = f"{old.label}, then {new.label}"
    couples = [(pair.old, pair.new) for pair in pairs]
    earlier, later = (identity(source.session.manifest, source.rows) for source in (old, new))
    differ = differences(earlier, later, couples)
    if differ:
        what = "; ".join(one.text for one in differ)
        return Part(title, notes=(f"Not compared, for the runs differ in {what}.",))
    told = [answer_text(one) for one in found if one.verdict in ("faster", "slower")]
    return Part(title, tuple(f"{text}." for text in told), tables=(_table(found),))


def _table(found: list[Comparison]) -> Table:
    percent = f"{100 * MARGIN:g} %"
    caption = f"New time over old time; same: the whole interval is within {percent} of 1"
    return table_of(comparison_table(found), caption)
