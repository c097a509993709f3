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
    for line in text.splitlines():
        if _INFO_HEAD.match(line):
            inside = True
            continue
        if not inside:
            continue
        match = _INFO_ROW.match(line)
        if match is None:
            break
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
