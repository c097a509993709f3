"""Expert-parallel runs: fused against small ops, bytes beside the plan's, loads, waits."""

from __future__ import annotations

from moe_prof.render.ep_view import (
    EpCase,
    answer_text,
    cases_of,
    load_text,
    output_table,
    overview_table,
    tables_of,
    times_table,
    waits_table,
)
from moe_prof.report.material import Material, Source
from moe_prof.report.parts import Context, Missing, Part, Table, by_source, table_of

MOST_CASES = 12
"""Cases that are shown in full; the overview has all."""


def make(material: Material) -> Context | Missing:
    """A part for each session of ``ep``."""
    return by_source(material, _part, "no session ran expert-parallel; 'moe-prof ep' does")


def _part(source: Source) -> Part | None:
    cases = cases_of(source.rows)
    if not cases:
        return None
    tables: list[Table] = []
    if len(cases) > 1:
        tables.append(table_of(overview_table(cases), "All cases: fused against small ops"))
        tables.append(table_of(output_table(cases), "All cases: bytes counted / planned, output"))
    for case in cases[:MOST_CASES]:
        tables += _tables(case)
    texts = []
    for case in cases[:MOST_CASES]:
        words = [f"{case.label}: {case.index.text('', 'ranks')}.", _sentence(answer_text(case))]
        words.append(_sentence(load_text(case)))
        texts.append(" ".join(filter(None, words)))
    left = len(cases) - MOST_CASES
    notes = (f"{left} more cases stand in the overview and in the data.",) if left > 0 else ()
    return Part(texts=tuple(texts), tables=tuple(tables), notes=notes)


def _tables(case: EpCase) -> list[Table]:
    """Those of one case that have rows."""
    found = [table_of(times_table(case), f"{case.label}: times and communication, a call")]
    found += [table_of(table, f"{case.label}: {title}") for title, table in tables_of(case)]
    for name in case.variants:
        waits = waits_table(case, name)
        if waits is not None:
            found.append(table_of(waits, f"{case.label}: {name}: who waited for whom, a call"))
    return found


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}." if text else ""
