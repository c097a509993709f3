"""How fast a core could run a loop at best: llvm-mca on the hot loop of the path that ran.

llvm-mca simulates a loop body that always hits the first-level cache and never mispredicts; what it
gives are lower bounds of the cycles per iteration. Instructions that its scheduling model does not
know end in a refusal here, never in a number: llvm-mca itself would count AMX as a placeholder.

Source: LLVM documentation, "llvm-mca - LLVM Machine Code Analyzer".
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from moe_prof.collectors import llvm_mca_format
from moe_prof.collectors.base import Availability
from moe_prof.collectors.fusion import issue_slots
from moe_prof.collectors.hotloop import CountedInstruction, HotLoop
from moe_prof.collectors.llvm_mca_format import Bottleneck, McaReport
from moe_prof.collectors.scheduling_models import ModelChoice, Target, choose
from moe_prof.collectors.toolrun import run_tool
from moe_prof.errors import ToolError, UnavailableError

NAME = "llvm_mca"
INSTALL = "apt install llvm"
BINARIES = ("llvm-mca", *(f"llvm-mca-{version}" for version in range(22, 13, -1)))
TIMEOUT_S = 60.0
ITERATIONS = 100
MAX_INSTRUCTIONS = 2000

# From this factor above the throughput bound, something else binds the loop. Below it, uneven use
# of ports in the simulation explains it: 10 % for an int8 dot product on the icelake-server model.
BINDING_MARGIN = 1.2

Bound = Literal["dependency", "ports", "dispatch"]

_VERSION = re.compile(r"LLVM version (?P<major>\d+)\.\S*")
_AMX = re.compile(r"^(?:tdp|tcmm|tile|tmmul|t2rpnt|tcvt|ttdp|tconj)")
_NOP = re.compile(
    r"^(?:(?:data16|cs|ds|es|ss|fs|gs|rep|repz|addr32)\s+)*(?:nop[wlq]?\b.*|xchg\s+%ax,%ax)$"
)
_BAD_SYNTAX = re.compile(r"error: (?:invalid|unknown|unexpected|too|instruction|unrecognized).*")
_UNSUPPORTED = "unsupported instruction"


@dataclass(frozen=True, slots=True)
class Mca:
    """An installed llvm-mca: its program, major version and the processor names that it knows."""

    program: str
    version: int
    processors: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LoopThroughput:
    """Lower bounds of one loop, in cycles of the core per iteration.

    Attributes:
        cpu: the processor name whose scheduling model was used.
        report: llvm-mca's figures.
        bottleneck: its bottleneck analysis, None when nothing held the backend up.
        instructions: per iteration, as simulated.
        uops: per iteration, each micro-operation counted on its own.
        issue_slots: per iteration, after fusion: what top-down counts as slots.
        throughput_cycles: bound by dispatch and execution ports. Operations that may use different
            groups of the same ports are added up group by group in llvm-mca's own figure, which is
            then too low; the simulated cycles are taken where ports held the loop up.
        dependency_cycles: bound by the loop-carried dependency chain; None when the chain is not
            what binds the loop, it is then shorter than ``simulated_cycles``.
        bound: what binds the loop: its dependency chain, execution ports, or the dispatch width.
        simulated_cycles: in the steady state of the simulation: both bounds and their interplay.
        notes: what limits the validity.
    """

    cpu: str
    report: McaReport
    bottleneck: Bottleneck | None
    instructions: int
    uops: float
    issue_slots: float
    throughput_cycles: float
    dependency_cycles: float | None
    simulated_cycles: float
    bound: Bound
    notes: tuple[str, ...]

    @property
    def uops_per_instruction(self) -> float:
        """Micro-operations per instruction, without fusion."""
        return self.uops / self.instructions

    @property
    def slots_per_instruction(self) -> float:
        """Issue slots per instruction, after fusion."""
        return self.issue_slots / self.instructions


def find_mca() -> Mca | Availability:
    """The newest usable llvm-mca on the path, or why there is none."""
    best: tuple[int, str] | None = None
    for binary in BINARIES:
        path = shutil.which(binary)
        major = _major_version(path) if path else None
        if path and major is not None and (best is None or major > best[0]):
            best = (major, path)
    if best is None:
        return Availability(NAME, False, "llvm-mca is not installed", INSTALL)
    version, program = best
    return Mca(program, version, _processors(program))


def availability(target: Target) -> Availability:
    """Whether llvm-mca is installed and has a scheduling model for this core."""
    found = find_mca()
    if isinstance(found, Availability):
        return found
    choice = choose_cpu(found, target)
    version = str(found.version)
    if choice.name is None:
        return Availability(NAME, False, choice.note, "apt install llvm-19", version)
    reason = f"bounds of the hot loop, model {choice.name}"
    return Availability(
        NAME, True, f"{reason}; {choice.note}" if choice.note else reason, "", version
    )


def choose_cpu(mca: Mca, target: Target) -> ModelChoice:
    """The processor name to pass to this llvm-mca."""
    return choose(target, known=mca.processors, version=mca.version)


def argv(program: str, cpu: str, source: Path, *, json: bool, iterations: int) -> tuple[str, ...]:
    """The command that simulates ``source``; as JSON (exact figures) or text (bottlenecks)."""
    form = ("--json",) if json else ("--bottleneck-analysis",)
    return (
        program,
        f"-mcpu={cpu}",
        f"-iterations={iterations}",
        "--instruction-info",
        "--resource-pressure",
        "--timeline=0",
        *form,
        str(source),
    )


def snippet(loop: HotLoop) -> str:
    """The loop's usual path through as assembler text, branch targets as labels.

    Raises:
        UnavailableError: the loop holds what no scheduling model can answer for: AMX tiles, calls,
            bytes that are no instruction, or far too much code.
    """
    body = loop.usual_path
    _refuse_unanswerable(loop, body)
    addresses = {instruction.address for instruction in body}
    targets = {i.target for i in body if i.is_branch and i.target in addresses}
    lines = []
    for instruction in body:
        if instruction.address in targets:
            lines.append(f"{_label(instruction.address)}:")
        lines.append(f"\t{_assembler_text(instruction, addresses)}")
    return "\n".join(lines) + "\n"


def run(mca: Mca, cpu: str, loop: HotLoop, *, folder: Path, name: str = NAME) -> LoopThroughput:
    """Simulate the loop; sources and reports stay in ``folder`` under ``name``.

    Raises:
        UnavailableError: the model does not know instructions of the loop, or this processor.
        ToolError: llvm-mca failed otherwise.
    """
    source = folder / f"{name}.s"
    text = snippet(loop)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        source.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ToolError(f"cannot write {source}: {error.strerror}") from error

    def report(label: str, *, json: bool, iterations: int) -> str:
        result = run_tool(
            argv(mca.program, cpu, source, json=json, iterations=iterations),
            folder=folder, name=f"{name}-{label}", timeout_s=TIMEOUT_S,
        )  # fmt: skip
        check_output(result.stdout, result.stderr, result.returncode, mca=mca, cpu=cpu)
        return result.stdout

    exact = llvm_mca_format.parse(report("json", json=True, iterations=ITERATIONS))
    longer = llvm_mca_format.parse(report("long", json=True, iterations=2 * ITERATIONS))
    bottleneck = llvm_mca_format.parse_bottleneck(report("text", json=False, iterations=ITERATIONS))
    steady = (longer.cycles - exact.cycles) / (longer.iterations - exact.iterations)
    return interpret(replace(exact, bottleneck=bottleneck), cpu=cpu, steady_cycles=steady)


def check_output(stdout: str, stderr: str, returncode: int, *, mca: Mca, cpu: str) -> None:
    """Tell apart how llvm-mca can fail; a report beside an error message is no answer.

    Raises:
        UnavailableError: unknown processor or unknown instructions.
        ToolError: anything else.
    """
    if "is not a recognized processor" in stderr or "unable to find" in stderr:
        raise UnavailableError(
            f"llvm-mca {mca.version} does not know the processor {cpu}; install a newer llvm"
        )
    unknown = _BAD_SYNTAX.findall(stderr)
    if unknown:
        raise UnavailableError(_unknown_text(mca, cpu, len(unknown), unknown[0], at_least=False))
    if _UNSUPPORTED in stderr:
        match = re.search(r"note: instruction:\s*(.*)", stderr)
        example = " ".join(match[1].split()) if match else "not named"
        raise UnavailableError(_unknown_text(mca, cpu, 1, example, at_least=True))
    if returncode or not stdout.strip():
        words = stderr.strip().splitlines() or ["no message"]
        raise ToolError(f"llvm-mca {mca.version} failed ({returncode}): {words[0]}")


def interpret(report: McaReport, *, cpu: str, steady_cycles: float) -> LoopThroughput:
    """Bounds from a report.

    Args:
        steady_cycles: cycles per iteration without the filling and draining of the pipeline.

    Raises:
        UnavailableError: the model has no data for some of the instructions.
    """
    placeholders = [i.text for i in report.listing if i.is_placeholder]
    if placeholders:
        count = len(placeholders)
        raise UnavailableError(
            f"the {cpu} model of llvm-mca does not know {count} "
            f"instruction{'s' if count > 1 else ''}: {placeholders[0]}"
        )
    simulated = max(steady_cycles, report.block_rthroughput)
    bound = _bound(report, simulated)
    port_limit = bound == "ports" and simulated > BINDING_MARGIN * report.block_rthroughput
    slots, fusion_note = issue_slots(report.listing, report.resources)
    notes = ["all loads hit the first-level cache, all branches are predicted", fusion_note]
    return LoopThroughput(
        cpu=cpu,
        report=report,
        bottleneck=report.bottleneck,
        instructions=report.instructions // report.iterations,
        uops=report.uops / report.iterations,
        issue_slots=slots,
        throughput_cycles=simulated if port_limit else report.block_rthroughput,
        dependency_cycles=simulated if bound == "dependency" else None,
        simulated_cycles=simulated,
        bound=bound,
        notes=tuple(note for note in notes if note),
    )


def _bound(report: McaReport, simulated: float) -> Bound:
    found = report.bottleneck
    if found is not None and simulated > BINDING_MARGIN * report.block_rthroughput:
        return "dependency" if found.dependency_pct >= found.resource_pct else "ports"
    dispatch = report.uops / report.iterations / report.dispatch_width
    return "ports" if report.block_rthroughput > dispatch else "dispatch"


def _refuse_unanswerable(loop: HotLoop, body: Sequence[CountedInstruction]) -> None:
    where = f"the hot loop of {loop.function}"
    if any(_AMX.match(i.text) for i in body):
        raise UnavailableError(f"{where} uses AMX tiles: llvm-mca has only placeholders for them")
    if any("(bad)" in i.text for i in body):
        raise UnavailableError(f"{where} holds bytes that objdump does not know; update binutils")
    if any(i.is_call for i in body):
        called = f" ({loop.calls[0]})" if loop.calls else ""
        raise UnavailableError(f"{where} calls another function{called}: llvm-mca cannot follow it")
    if not body or len(body) > MAX_INSTRUCTIONS:
        raise UnavailableError(f"{where} has {len(body)} instructions: too many for a loop body")


def _assembler_text(instruction: CountedInstruction, addresses: set[int]) -> str:
    text = instruction.text
    if _NOP.match(text):
        return "nop"
    text = re.sub(r"^(?:notrack|bnd) ", "", text)
    if instruction.target is None:
        return text
    label = _label(instruction.target) if instruction.target in addresses else ".Lelsewhere"
    return re.sub(r"(?<=[\s,])[0-9a-f]+ <.+>$", label, text)


def _label(address: int) -> str:
    return f".L{address:x}"


def _unknown_text(mca: Mca, cpu: str, count: int, example: str, *, at_least: bool) -> str:
    number = f"at least {count}" if at_least else str(count)
    noun = "instruction" if count == 1 else "instructions"
    return f"the {cpu} model of llvm-mca {mca.version} does not know {number} {noun}: {example}"


def _major_version(program: str) -> int | None:
    match = _VERSION.search(_output([program, "--version"]))
    return int(match["major"]) if match else None


def _processors(program: str) -> tuple[str, ...]:
    """Names listed by -mcpu=help, which goes to stderr, in front of an error about the input."""
    names = []
    for line in _output([program, "-mcpu=help"]).splitlines():
        if line.startswith("Available features"):
            break
        match = re.match(r"\s+(?P<name>[\w.+-]+)\s+- ", line)
        if match:
            names.append(match["name"])
    return tuple(names)


def _output(command: Sequence[str]) -> str:
    try:
        answer = subprocess.run(
            list(command), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, timeout=30, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return answer.stdout.decode("utf-8", "replace")
