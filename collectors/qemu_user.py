"""Counting the instructions of a program for another architecture in qemu's user mode.

A plugin counts what is executed between the driver's marks of its region, by phase, kind and
symbol. These are exact counts of an emulated processor: they say nothing of time, of caches or of
what a core does at once. What a handler of the tests executes in place of an instruction is left
out; the instruction itself counts as one. Marks of the phases are left out as well, but not the few
instructions around their calls.

Source: QEMU's docs/devel/tcg-plugins; the plugin is ``qemu/count_instructions.c`` beside this file.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import tempfile
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from moe_prof.collectors.base import Availability, ToolRun
from moe_prof.collectors.installed import version_line
from moe_prof.collectors.toolrun import run_tool
from moe_prof.errors import InputError, ToolError, WorkloadError

NAME = "qemu_user"
INSTALL = "apt install qemu-user"
NOTE = "emulated: counts only, no time"
PLUGIN_SOURCE = Path(__file__).resolve().parent / "qemu" / "count_instructions.c"
BEGIN, END = "_ZN5bench6Region5begin", "_ZN5bench6Region3end"
"""Prefixes of the functions that mark the region in ``moe_bench``."""
MARK = "moe_phase_mark_"
"""Of those that mark the phases, in the build that has them (kernels/cpp/phase_marks.h)."""
NO_PHASE = "none"
WRONG_RESULT = 6
"""Exit code of ``moe_bench`` when its check fails; the counts are there."""

KINDS = ("integer", "float", "load", "store", "branch", "jump", "vector_arithmetic", "vector_load",
         "vector_store", "vector_configuration", "matrix")  # fmt: skip
_STAND_IN = "ime_emulator"
_Key = TypeVar("_Key", bound=Hashable)
_LINE = re.compile(r"(?P<count>\d{1,19}) (?P<kind>\w+) (?P<phase>\w+) (?P<symbol>\S*)")


@dataclass(frozen=True, slots=True)
class Count:
    """Instructions of one kind in one function and phase.

    Attributes:
        kind: one of KINDS.
        phase: of the forward, NO_PHASE between them.
        symbol: the function, as the symbol table names it.
    """

    count: int
    kind: str
    phase: str
    symbol: str


@dataclass(frozen=True, slots=True)
class EmulatedCounts:
    """Instructions of the region.

    Attributes:
        counts: all of them.
        left_out: executed by a handler that stands in for an instruction, or by a mark.
    """

    counts: tuple[Count, ...]
    left_out: int

    @property
    def instructions(self) -> int:
        """All of them."""
        return sum(one.count for one in self.counts)

    def by_kind(self, phase: str | None = None) -> dict[str, int]:
        """Instructions by kind, in the order of KINDS; of one phase, or of all."""
        found = self._sums((one.kind, one.count) for one in self.counts
                           if phase in (None, one.phase))  # fmt: skip
        return {kind: found[kind] for kind in KINDS if kind in found}

    def by_phase(self) -> dict[str, int]:
        """Instructions by phase, NO_PHASE among them."""
        return self._sums((one.phase, one.count) for one in self.counts)

    def by_symbol(self) -> dict[tuple[str, str], int]:
        """Instructions by function and phase."""
        return self._sums(((one.symbol, one.phase), one.count) for one in self.counts)

    @staticmethod
    def _sums(parts: Iterable[tuple[_Key, int]]) -> dict[_Key, int]:
        found: dict[_Key, int] = {}
        for key, count in parts:
            found[key] = found.get(key, 0) + count
        return found


def availability() -> Availability:
    """Whether qemu-riscv64 is there and takes plugins, which its static build does not."""
    line = version_line(NAME, "qemu-riscv64", INSTALL)
    if isinstance(line, Availability):
        return line
    if shutil.which("cc") is None:
        return Availability(NAME, False, "no C compiler for its plugin", "apt install gcc")
    version = re.search(r"version (\S+)", line)
    what = "counted instructions of riscv64 programs"
    return Availability(NAME, True, what, version=version[1] if version else "")


def build_plugin(cache: Path) -> Path:
    """The plugin as a shared object in ``cache``, compiled if it is not there.

    Raises:
        ToolError: it does not compile.
    """
    key = hashlib.sha256(PLUGIN_SOURCE.read_bytes()).hexdigest()[:16]
    plugin = cache / f"qemu-count-{key}.so"
    if plugin.is_file():
        return plugin
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as folder:
            made = Path(folder) / plugin.name
            argv = ["cc", "-O2", "-shared", "-fPIC", "-o", str(made), str(PLUGIN_SOURCE)]
            done = subprocess.run(
                argv, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
            )
            if done.returncode:
                said = done.stderr.strip().splitlines()[:1] or ["no message"]
                raise ToolError(f"qemu's plugin does not compile: {said[0]}")
            made.replace(plugin)
    except OSError as error:
        raise ToolError(f"qemu's plugin cannot be built in {cache}: {error.strerror}") from error
    return plugin


def argv(
    workload: Sequence[str], *, emulator: Sequence[str], plugin: Path, out_file: Path
) -> tuple[str, ...]:
    """The command that counts the region which ``workload`` marks.

    Args:
        emulator: qemu and its options.
    """
    options = f"{plugin},out={out_file},begin={BEGIN},end={END},mark={MARK}"
    return (emulator[0], "-plugin", options, *emulator[1:], *workload)


def run(command: Sequence[str], *, out_file: Path, folder: Path, timeout_s: float) -> ToolRun:
    """Run the command of :func:`argv`; its raw output stays in ``folder``.

    Raises:
        ToolError: qemu does not start, takes no plugins or does not end in time.
        WorkloadError: the program fails.
    """
    done = run_tool(
        command, folder=folder, name=NAME, timeout_s=timeout_s, outputs={"counts": out_file}
    )
    if done.returncode not in (0, WRONG_RESULT):
        said = done.stderr.strip().splitlines()[-1:] or ["no message"]
        if "plugin" in said[0].lower():
            raise ToolError(f"{command[0]}: {said[0]}; plugins need the dynamic one ({INSTALL})")
        raise WorkloadError(
            f"emulated moe_bench failed with exit code {done.returncode}: {said[0]}"
        )
    if "counts" not in done.outputs:
        raise ToolError(f"{command[0]} wrote no counts: it takes no plugins; {INSTALL}")
    return done


def parse(text: str) -> EmulatedCounts:
    """Read what the plugin wrote.

    Raises:
        InputError: the region's end was not reached, or a line makes no sense.
    """
    lines = text.splitlines()
    if not lines or lines[-1] != "complete":
        raise InputError("qemu's counts are not complete: the program did not reach its last mark")
    found: list[Count] = []
    left_out = 0
    for line in lines[:-1]:
        match = _LINE.fullmatch(line)
        if match is None or match["kind"] not in KINDS:
            raise InputError(f"qemu's counts have a line that makes no sense: {line[:80]!r}")
        count, symbol = int(match["count"]), match["symbol"]
        # Code without a symbol is the page through which a handler returns.
        if symbol.startswith((_STAND_IN, MARK)) or not symbol:
            left_out += count
        else:
            found.append(Count(count, match["kind"], match["phase"], symbol))
    return EmulatedCounts(tuple(found), left_out)
