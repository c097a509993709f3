"""Working time by phase of the forward."""

from __future__ import annotations

from moe_prof.figures import phases
from moe_prof.figures.shares import phase_shares
from moe_prof.report.material import Material, Source
from moe_prof.report.parts import Context, Missing, Part, by_source, picture, plain_table
from moe_prof.units import share_text


def make(material: Material) -> Context | Missing:
    """A figure and a table for each session that knows phases."""
    return by_source(
        material, _part, "no session knows phases; 'moe-prof topdown' and 'hotspots' measure them"
    )


def _part(source: Source) -> Part | None:
    shares = {name: phase_shares(source.index, name) for name in source.variants}
    shares = {name: found for name, found in shares.items() if found}
    if not shares:
        return None
    names = list(dict.fromkeys(phase for found in shares.values() for phase in found))
    rows = [
        (variant, *(share_text(found.get(phase)) for phase in names))
        for variant, found in shares.items()
    ]
    caption = "Share of each phase in the working time"
    return Part(
        pictures=picture(
            phases(source.rows, list(shares)), f"phases-{source.number}", f"{caption}, in percent."
        ),
        tables=(plain_table(caption, ("variant", *names), rows),),
    )
