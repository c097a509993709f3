"""llvm-mca, text and JSON: a model's figures of a loop, so all of them are modelled."""

from __future__ import annotations

import re
from collections.abc import Iterator

from moe_prof.collectors import llvm_mca_format
from moe_prof.collectors.llvm_mca_format import McaFigures, McaInstruction
from moe_prof.importing.base import Found, Kind, Labels, Part, RowMaker
from moe_prof.rows import Row

NAME = "llvm-mca"
_UNITS = {"Total Cycles": "cycles", "Block RThroughput": "cycles", "Latency": "cycles",
          "RThroughput": "cycles"}  # fmt: skip
_START = re.compile(r"Iterations:\s+\d+\s*$|\[\d+\] Code Region(?: - |\s*$)")
_JSON_KEYS = ('"CodeRegions"', '"SummaryView"', '"InstructionInfoView"')


def read(part: Part, labels: Labels) -> Found:
    """Rows of every code region; raises InputError."""
    regions = llvm_mca_format.read_regions(part.text)
    rows: list[Row] = []
    remarks: list[str] = []
    for number, region in enumerate(regions):
        named = region.name or (f"region {number}" if len(regions) > 1 else None)
        rows += _region_rows(region, named, RowMaker(labels, NAME, "modelled"))
        remarks += _region_remarks(region)
    return Found(tuple(rows), tuple(remarks), ", ".join(r.name for r in regions if r.name))


def _region_remarks(region: McaFigures) -> Iterator[str]:
    where = f"line {region.line}: " if region.line else ""
    if not region.figures:
        yield f"{where}a code region without its summary: it was switched off or cut off"
    unknown = sum(instruction.is_placeholder for instruction in region.listing)
    if unknown:
        yield f"{where}the scheduling model has no data for {unknown} instructions (latency 100)"


def _region_rows(region: McaFigures, named: str | None, maker: RowMaker) -> Iterator[Row]:
    for name, value in region.figures.items():
        yield maker.row(name, value, _unit(name), "summary view", scope="loop", phase=named)
    for name, value in region.pressure.items():
        yield maker.row(
            f"pressure {name}",
            value,
            "cycles",
            "resource pressure per iteration",
            scope="loop",
            phase=named,
        )
    for number, instruction in enumerate(region.listing):
        yield from _instruction_rows(instruction, number, named, maker)


def _instruction_rows(
    instruction: McaInstruction, number: int, named: str | None, maker: RowMaker
) -> Iterator[Row]:
    values = (
        ("#uOps", float(instruction.uops)),
        ("Latency", float(instruction.latency)),
        ("RThroughput", instruction.rthroughput),
    )
    for name, value in values:
        source = f"{instruction.text}; instruction {number}"
        yield maker.row(
            name,
            value,
            _unit(name),
            source,
            scope="instruction",
            phase=named,
            status="ok" if value is not None else "not_supported",
            missing="the model has none",
        )


def _unit(metric: str) -> str:
    return _UNITS.get(metric, "cycles" if metric.startswith("pressure ") else "1")


def _is_json(part: Part) -> bool:
    text = part.text
    return text.lstrip().startswith("{") and any(key in text for key in _JSON_KEYS)


TEXT = Kind(name=NAME, title="llvm-mca, text", read=read, starts=_START.match)
JSON = Kind(name=NAME, title="llvm-mca, JSON", read=read, whole=_is_json)
