"""Working time, or instructions where only these are known, by phase of the forward."""

from __future__ import annotations

from moe_prof.analysis.phase_shares import PhaseShares, phase_shares
from moe_prof.figures import phases
from moe_prof.report.material import Material, Source
from moe_prof.report.parts import Context, Missing, Part, by_source, picture, plain_table
from moe_prof.units import share_text


def make(material: Material) -> Context | Missing:
    """A figure and a table for each session that knows phases."""
    return by_source(
        material, _part,
        "no session knows phases; 'moe-prof topdown' and 'hotspots' measure them, and 'counters "
        "--target' counts them",
    )  # fmt: skip


def _part(source: Source) -> Part | None:
    known = {name: phase_shares(source.index, name) for name in source.variants}
    found = {name: shares for name, shares in known.items() if shares is not None}
    wholes = dict.fromkeys(shares.whole for shares in found.values())
    parts = [_of_one_whole(source, whole, found) for whole in wholes]
    return Part(
        pictures=tuple(shown for part in parts for shown in part.pictures),
        tables=tuple(table for part in parts for table in part.tables),
    ) if parts else None  # fmt: skip


def _of_one_whole(source: Source, whole: str, found: dict[str, PhaseShares]) -> Part:
    """Shares of time and of instructions are not the same thing: they do not share a figure."""
    shares = {name: known.shares for name, known in found.items() if known.whole == whole}
    names = list(dict.fromkeys(phase for known in shares.values() for phase in known))
    rows = [
        (variant, *(share_text(known.get(phase)) for phase in names))
        for variant, known in shares.items()
    ]
    caption = f"Share of each phase in the {whole}"
    name = f"phases-{source.number}-{whole.replace(' ', '-')}"
    return Part(
        pictures=picture(phases(source.rows, list(shares)), name, f"{caption}, in percent."),
        tables=(plain_table(caption, ("variant", *names), rows),),
    )
