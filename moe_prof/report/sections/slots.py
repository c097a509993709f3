"""The top-down tree of each variant: stacked bars and the table behind them."""

from __future__ import annotations

from moe_prof.figures import slots
from moe_prof.figures.slots import NODES, slot_shares
from moe_prof.render.tables import topdown_table
from moe_prof.report.material import Material, Source
from moe_prof.report.parts import (
    Context,
    Missing,
    Part,
    by_source,
    picture,
    plain_table,
    table_of,
    why_missing,
)
from moe_prof.units import share_text


def make(material: Material) -> Context | Missing:
    """A figure and a table for each session with fractions of slots."""
    return by_source(
        material, _part, "no session has fractions of issue slots; 'moe-prof topdown' gives them"
    )


def _part(source: Source) -> Part | None:
    index = source.index
    known = [name for name in source.variants if slot_shares(index, name)]
    if not known:
        return None
    how = _provenance(source, known)
    caption = f"Issue slots, {how}, in percent: level 2 where it is known."
    parts = {
        node: {name: share for name in known if (share := index.value(name, node)) is not None}
        for node in dict.fromkeys(m for name in known for m in index.metrics(name))
        if node.partition(".")[0] in NODES and node.count(".") >= 2
    }
    tables = [table_of(topdown_table(index, known), f"Issue slots in percent, {how}")]
    if parts:
        deeper = [
            (node, *(share_text(shares.get(name)) for name in known))
            for node, shares in parts.items()
        ]
        tables.append(plain_table("Deeper levels of the tree", ("node", *known), deeper))
    return Part(
        pictures=picture(slots(source.rows, known), f"slots-{source.number}", caption),
        tables=tuple(tables),
        notes=why_missing(source, source.variants, "Retiring"),
    )


def _provenance(source: Source, variants: list[str]) -> str:
    found = {
        row.provenance
        for name in variants
        if (row := source.index.row(name, "Retiring")) is not None and row.value is not None
    }
    return " and ".join(sorted(found)) or "as given"
