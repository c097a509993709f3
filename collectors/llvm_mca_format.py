"""Reading llvm-mca's report, as text or as JSON.

Both have the same figures; JSON (llvm-mca 13 and later) gives them unrounded, and only the text has
the bottleneck analysis. Text rounds the block's reciprocal throughput to one digit.

Source: LLVM documentation, "llvm-mca - LLVM Machine Code Analyzer"; outputs of llvm-mca 14.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from moe_prof.errors import InputError

PLACEHOLDER_LATENCY = 100  # of instructions that a scheduling model lists without data

_FIELD = r"^{}:\s+(?P<value>[\d.]+)\s*$"
_INFO_HEAD = re.compile(r"^\[1\]\s+\[2\]\s+\[3\]\s+\[4\]\s+\[5\]\s+\[6\].*Instructions:\s*$")
_INFO_ROW = re.compile(
    r"^\s*(?P<uops>\d+)\s+(?P<latency>\d+)\s+(?P<rthroughput>\d+\.\d+|-)(?P<flags>[ *U]{5,}?)"
    r"\s*(?P<text>(?:\{\w+\}\s*)?[a-z#].*)$"
)
_PERCENT = r"{}:?\s+\[ (?P<value>[\d.]+)% \]"
_RESOURCE = re.compile(r"^\s*- (?P<name>[\w.]+)\s+\[ (?P<value>[\d.]+)% \]\s*$")
_RESOURCE_NAME = re.compile(r"^\[(?P<index>[\d.]+)\]\s+- (?P<name>\S+)\s*$")


@dataclass(frozen=True, slots=True)
class McaInstruction:
    """One instruction as the scheduling model knows it; latency and throughput in cycles."""

    text: str
    uops: int
    latency: int
    rthroughput: float | None
    may_load: bool
    may_store: bool
    side_effects: bool

    @property
    def is_placeholder(self) -> bool:
        """The model lists the instruction, but has no data for it."""
        return self.latency >= PLACEHOLDER_LATENCY


@dataclass(frozen=True, slots=True)
class Bottleneck:
    """Share of cycles, in percent, in which something held the backend up; causes overlap."""

    pressure_pct: float
    resource_pct: float
    dependency_pct: float
    register_pct: float | None
    memory_pct: float | None
    resources: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class McaReport:
    """One code region simulated for ``iterations`` repetitions.

    Attributes:
        instructions / cycles / uops: of all iterations together; cycles include the filling and
            draining of the pipeline.
        block_rthroughput: cycles per iteration that dispatch and execution resources need at least.
        resources: names of the scheduling model's resources.
        bottleneck: None when it was not asked for, or when nothing held the backend up.
    """

    iterations: int
    instructions: int
    cycles: int
    uops: int
    dispatch_width: int
    ipc: float
    block_rthroughput: float
    listing: tuple[McaInstruction, ...]
    resources: tuple[str, ...]
    bottleneck: Bottleneck | None

    @property
    def uops_per_instruction(self) -> float:
        """Micro-operations per instruction, without fusion."""
        return self.uops / self.instructions

    @property
    def cycles_per_iteration(self) -> float:
        """Simulated cycles per iteration."""
        return self.cycles / self.iterations


def parse(text: str) -> McaReport:
    """Read the first code region of a report.

    Raises:
        InputError: the text is no such report, or it was cut off.
    """
    if text.lstrip().startswith("{"):
        return _parse_json(text)
    return _parse_text(text)


def parse_bottleneck(text: str) -> Bottleneck | None:
    """The bottleneck analysis of a text report, None when it says that there is none."""

    def percent(label: str) -> float | None:
        match = re.search(_PERCENT.format(label), text)
        return float(match["value"]) if match else None

    pressure = percent("Cycles with backend pressure increase")
    if pressure is None:
        return None
    resources: dict[str, float] = {}
    inside = False
    for line in text.splitlines():
        if line.strip().startswith("Resource Pressure"):
            inside = True
        elif line.strip().startswith("Data Dependencies"):
            break
        elif inside and (match := _RESOURCE.match(line)):
            resources[match["name"]] = float(match["value"])
    return Bottleneck(
        pressure_pct=pressure,
        resource_pct=percent("Resource Pressure") or 0.0,
        dependency_pct=percent("Data Dependencies") or 0.0,
        register_pct=percent("Register Dependencies"),
        memory_pct=percent("Memory Dependencies"),
        resources=resources,
    )


def _parse_text(text: str) -> McaReport:
    def number(label: str) -> float:
        match = re.search(_FIELD.format(label), text, re.MULTILINE)
        if match is None:
            raise InputError(
                f"this is no complete llvm-mca report: it has no '{label}:' line; "
                "run llvm-mca again, or give its --json output"
            )
        return float(match["value"])

    names = [
        match["name"] for line in text.splitlines() if (match := _RESOURCE_NAME.match(line))
    ]  # fmt: skip
    report = McaReport(
        iterations=int(number("Iterations")),
        instructions=int(number("Instructions")),
        cycles=int(number("Total Cycles")),
        uops=int(number("Total uOps")),
        dispatch_width=int(number("Dispatch Width")),
        ipc=number("IPC"),
        block_rthroughput=number("Block RThroughput"),
        listing=tuple(_text_listing(text)),
        resources=tuple(names),
        bottleneck=parse_bottleneck(text),
    )
    return _checked(report)


def _text_listing(text: str) -> list[McaInstruction]:
    found: list[McaInstruction] = []
    inside = False
    column = 0  # where the instructions begin behind their encodings
    for raw in text.splitlines():
        if _INFO_HEAD.match(raw):
            inside = True
            column = raw.index("Instructions:") if "Encodings:" in raw else 0
            continue
        if not inside:
            continue
        if not raw.strip():
            break
        line = f"{raw[:42]:42}{raw[column:]}" if column else raw
        match = _INFO_ROW.match(line)
        if match is None:
            continue
        flags = match["flags"].ljust(21)
        rthroughput = match["rthroughput"]
        found.append(
            McaInstruction(
                text=" ".join(match["text"].split()),
                uops=int(match["uops"]),
                latency=int(match["latency"]),
                rthroughput=None if rthroughput == "-" else float(rthroughput),
                may_load="*" in flags[:7],
                may_store="*" in flags[7:],
                side_effects="U" in flags,
            )
        )
    return found


def _parse_json(text: str) -> McaReport:
    try:
        data: Any = json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(f"this llvm-mca JSON is damaged or was cut off: {error}") from error
    try:
        region = data["CodeRegions"][0] if "CodeRegions" in data else data
        summary = region["SummaryView"]
        resources = data.get("TargetInfo", region.get("TargetInfo", {})).get("Resources", [])
        report = McaReport(
            iterations=int(summary["Iterations"]),
            instructions=int(summary["Instructions"]),
            cycles=int(summary["TotalCycles"]),
            uops=int(summary["TotaluOps"]),
            dispatch_width=int(summary["DispatchWidth"]),
            ipc=float(summary["IPC"]),
            block_rthroughput=float(summary["BlockRThroughput"]),
            listing=tuple(_json_listing(region)),
            resources=tuple(str(name) for name in resources),
            bottleneck=None,
        )
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"this JSON is no llvm-mca report: {error!r} is missing or odd") from error
    return _checked(report)


def _json_listing(region: Mapping[str, Any]) -> list[McaInstruction]:
    texts = region["Instructions"]
    return [
        McaInstruction(
            text=" ".join(str(texts[entry["Instruction"]]).split()),
            uops=int(entry["NumMicroOpcodes"]),
            latency=int(entry["Latency"]),
            rthroughput=float(entry["RThroughput"]),
            may_load=bool(entry["mayLoad"]),
            may_store=bool(entry["mayStore"]),
            side_effects=bool(entry["hasUnmodeledSideEffects"]),
        )
        for entry in region.get("InstructionInfoView", {}).get("InstructionList", [])
    ]


def _checked(report: McaReport) -> McaReport:
    positive = (report.iterations, report.instructions, report.cycles, report.dispatch_width)
    if min(positive) < 1 or not math.isfinite(report.ipc + report.block_rthroughput):
        raise InputError("this llvm-mca report states zero or infinite work: it simulated nothing")
    return report


@dataclass(frozen=True, slots=True)
class McaFigures:
    """What a report of any version says of one code region, as far as it goes.

    Attributes:
        name: of the region, "" when the code has no marks.
        figures: of the summary, under the names of the text form.
        listing: instructions; empty where the view was switched off.
        pressure: cycles per iteration by resource.
        line: where the region begins in the text, 0 for JSON.
    """

    name: str
    figures: Mapping[str, float]
    listing: tuple[McaInstruction, ...]
    pressure: Mapping[str, float]
    line: int = 0


SUMMARY_LINE = re.compile(
    r"(?P<name>Iterations|Instructions|Total Cycles|Total uOps|Dispatch Width|uOps Per Cycle|IPC"
    r"|Block RThroughput):\s+(?P<value>[0-9]+(?:\.[0-9]+)?)\s*$"
)
REGION_LINE = re.compile(r"\[\d+\] Code Region(?: - (?P<name>.*))?\s*$")
_JSON_NAMES = {
    "Iterations": "Iterations", "Instructions": "Instructions", "TotalCycles": "Total Cycles",
    "TotaluOps": "Total uOps", "DispatchWidth": "Dispatch Width",
    "uOpsPerCycle": "uOps Per Cycle", "IPC": "IPC", "BlockRThroughput": "Block RThroughput",
}  # fmt: skip
_PRESSURE_HEAD = re.compile(r"Resource pressure per iteration:")


def read_regions(text: str) -> tuple[McaFigures, ...]:
    """Every code region of a report, with what is there of it.

    Raises:
        InputError: the text is no such report.
    """
    if text.lstrip().startswith("{"):
        return _json_regions(text)
    starts: list[tuple[int, str]] = []
    name = ""
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if region := REGION_LINE.match(line.strip()):
            name = (region["name"] or "").strip()
        if line.startswith("Iterations:"):
            starts.append((number, name))
            name = ""
    if not starts and any(SUMMARY_LINE.match(line) for line in lines):
        starts = [(0, "")]
    elif not starts and any(_INFO_HEAD.match(line) for line in lines):
        starts = [(0, name)]  # the summary view was switched off
    ends = [number for number, _ in starts[1:]] + [len(lines)]
    regions = [
        _text_region(lines[start:end], name, start)
        for (start, name), end in zip(starts, ends, strict=False)
    ]
    if not any(region.figures or region.listing for region in regions):
        raise InputError("this is no llvm-mca report: it has no 'Iterations:' line")
    return tuple(regions)


def _text_region(lines: list[str], name: str, start: int) -> McaFigures:
    figures: dict[str, float] = {}
    for line in lines:
        match = SUMMARY_LINE.match(line)
        if match and match["name"] not in figures:
            figures[match["name"]] = float(match["value"])
    text = "\n".join(lines)
    return McaFigures(name, figures, tuple(_text_listing(text)), _pressure(lines), start + 1)


def _pressure(lines: list[str]) -> dict[str, float]:
    names = {m["index"]: m["name"] for line in lines if (m := _RESOURCE_NAME.match(line))}
    for number, line in enumerate(lines):
        if _PRESSURE_HEAD.match(line) and number + 2 < len(lines):
            cells = lines[number + 2].split()
            if len(cells) == len(names) and all(re.fullmatch(r"-|\d+\.?\d*", c) for c in cells):
                return {
                    name: float(cell)
                    for name, cell in zip(names.values(), cells, strict=True)
                    if cell != "-"
                }
    return {}


def _json_regions(text: str) -> tuple[McaFigures, ...]:
    """Version 13 and later nest regions; earlier ones print one object a view."""
    decoder = json.JSONDecoder()
    merged: dict[str, Any] = {}
    place = 0
    try:
        while place < len(text):
            found, place = decoder.raw_decode(text, place)
            if not isinstance(found, dict):
                raise InputError("this JSON is no llvm-mca report: it holds no object")
            merged |= found
            while place < len(text) and text[place].isspace():
                place += 1
    except (json.JSONDecodeError, TypeError, RecursionError) as error:
        raise InputError(f"this llvm-mca JSON is damaged or was cut off: {error}") from error
    try:
        regions = merged.get("CodeRegions") or [merged]
        resources = merged.get("TargetInfo", {}).get("Resources", [])
        return tuple(_json_region(region, resources) for region in regions)
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"this JSON is no llvm-mca report: {error!r} is missing or odd") from error


def _json_region(region: Mapping[str, Any], resources: list[object]) -> McaFigures:
    summary = region.get("SummaryView", {})
    figures = {
        name: float(summary[key])
        for key, name in _JSON_NAMES.items()
        if math.isfinite(float(summary.get(key, math.inf)))
    }
    listing = tuple(_json_listing(region)) if "Instructions" in region else ()
    if not figures and not listing:
        raise ValueError("SummaryView")
    count = len(region.get("Instructions", ()))
    pressure = {
        str(resources[entry["ResourceIndex"]]): float(entry["ResourceUsage"])
        for entry in region.get("ResourcePressureView", {}).get("ResourcePressureInfo", [])
        if entry["InstructionIndex"] == count and entry["ResourceIndex"] < len(resources)
    }
    return McaFigures(str(region.get("Name", "")), figures, listing, pressure)
