"""``list``: the variants, scenarios, collectors and commands there are, from their tables."""

from __future__ import annotations

import argparse

from rich import box
from rich.console import Group as Body
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from moe_prof import kernels
from moe_prof import machine as facts
from moe_prof.analysis.work import WorkCounts, count_work
from moe_prof.checks import CHECKS, Group
from moe_prof.commands.base import Result
from moe_prof.kernels.table import VARIANTS, VariantSpec
from moe_prof.presets import PRESETS
from moe_prof.progress import Progress
from moe_prof.render.fitted import Column, FittedTable
from moe_prof.rows import Row
from moe_prof.scenario import SCENARIOS, of_preset
from moe_prof.units import bytes_text, count_text, digits_text, share_text

_COLLECTOR = "list"
_SCENARIOS = (*SCENARIOS.values(), *(of_preset(preset) for preset in PRESETS.values()))


class List:
    """list the variants, scenarios, collectors and commands.

    Variants with the ISA paths that run here, scenarios with their work and weights. Example:
    moe-prof list
    """

    name = "list"

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """No options of its own."""

    def run(self, args: argparse.Namespace, progress: Progress) -> Result:
        """Read the tables."""
        del args, progress
        return Result(tuple(rows()), body(_command_lines()), facts.read().as_dict())


def rows() -> list[Row]:
    """Rows: ``available`` of each variant, the counts of each scenario."""
    tidy = []
    for spec in VARIANTS:
        paths = kernels.isas(spec.name)
        tidy.append(
            Row(
                collector=_COLLECTOR,
                scope="machine",
                variant=spec.name,
                metric="available",
                value=float(bool(paths)),
                unit="1",
                source=f"{_paths_text(spec, paths)}: {spec.idea}",
            )
        )
    for scenario in _SCENARIOS:
        found = count_work(scenario)
        for metric, value, unit in (
            ("macs", float(found.macs), "MAC"),
            ("router_share", found.router_share, "1"),
            ("weight_bytes", float(_weight_bytes(found)), "bytes"),
            ("intensity_by_token", found.intensity_by_token_macs_per_byte, "MAC/byte"),
            ("intensity_grouped", found.intensity_grouped_macs_per_byte, "MAC/byte"),
        ):
            tidy.append(
                Row(
                    collector=_COLLECTOR,
                    scenario=scenario.label,
                    metric=metric,
                    value=value,
                    unit=unit,
                    provenance="modelled",
                    source=f"counted from the shape {scenario.shape_text}",
                )
            )
    return tidy


def body(commands: tuple[tuple[str, str], ...]) -> RenderableType:
    """Five tables."""
    return Body(
        *_titled("variants", _variant_table()),
        *_titled("scenarios, one forward", _scenario_table()),
        Text("or any sizes N,D,H,E,K, such as 128,256,128,16,4; NAME@N for N tokens of a model"),
        Text(),
        *_titled(
            "collectors ('moe-prof doctor' tells which work here)", _check_table("collectors")
        ),
        *_titled(
            "several ranks ('moe-prof doctor' tells what is missing)", _check_table("parallel")
        ),
        *_titled("commands", _pairs(commands)),
    )


def _titled(title: str, table: RenderableType) -> tuple[RenderableType, ...]:
    return (Text(title, style="bold"), table, Text())


def _variant_table() -> FittedTable:
    table = FittedTable(
        "variant",
        (
            Column("language", "left"),
            Column("paths here", "left", wraps=True),
            Column("idea", "left", wraps=True),
        ),
    )
    for spec in VARIANTS:
        paths = kernels.isas(spec.name)
        table.add_row(spec.name, spec.language, _paths_text(spec, paths), spec.idea)
    return table


def _scenario_table() -> FittedTable:
    titles = ("MACs", "router", "weights", "MAC/byte", "grouped")
    table = FittedTable("name", (Column("N,D,H,E,K", "left"), *map(Column, titles)))
    for scenario in _SCENARIOS:
        found = count_work(scenario)
        table.add_row(
            scenario.label,
            scenario.shape_text,
            count_text(found.macs),
            share_text(found.router_share),
            bytes_text(_weight_bytes(found)),
            _digits(found.intensity_by_token_macs_per_byte),
            _digits(found.intensity_grouped_macs_per_byte),
        )
    return table


def _check_table(group: Group) -> Table:
    return _pairs(tuple((check.name, check.purpose) for check in CHECKS if check.group == group))


def _command_lines() -> tuple[tuple[str, str], ...]:
    from moe_prof.commands import COMMANDS  # noqa: PLC0415  (the table of commands holds this one)

    lines = []
    for command in COMMANDS:
        text = " ".join((type(command).__doc__ or "").split())
        lines.append((command.name, text.split(". ")[0].rstrip(".")))
    return tuple(lines)


def _pairs(lines: tuple[tuple[str, str], ...]) -> Table:
    table = Table(
        box=box.SIMPLE_HEAD, show_header=False, padding=(0, 1), pad_edge=False, show_edge=False
    )
    table.add_column(no_wrap=True, min_width=12)
    table.add_column()
    for name, text in lines:
        table.add_row(name, text)
    return table


def _paths_text(spec: VariantSpec, paths: tuple[str, ...]) -> str:
    return ", ".join(paths) if paths else f"none (needs {' or '.join(spec.isas)})"


def _weight_bytes(work: WorkCounts) -> int:
    """Weights of the router and of all experts that a forward can touch, each once."""
    return work.router_bytes + work.weight_bytes_grouped


def _digits(value: float | None) -> str:
    return "-" if value is None else digits_text(value)
