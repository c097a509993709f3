"""Disassembling an address range with objdump.

Source: binutils manual, objdump; addresses are those of the object file, which are also the ones
that callgrind writes, for position-independent programs and shared libraries alike.
"""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from moe_prof.collectors.base import Availability
from moe_prof.collectors.installed import version_line
from moe_prof.collectors.toolrun import run_tool
from moe_prof.errors import InputError, ToolError, UnavailableError

NAME = "objdump"
INSTALL = "apt install binutils"
TIMEOUT_S = 60.0

_LINE = re.compile(r"^\s*(?P<address>[0-9a-f]+):\t(?P<text>.*\S)\s*$")
_TARGET = re.compile(r"(?:^|[\s,])(?P<address>[0-9a-f]+) <.+>$")
_BARE = re.compile(
    r"(?P<before>(?:[a-z]+ )*(?:j[a-z]+|call[a-z]*|b[a-z.]*|t?cbn?z|tbn?z) (?:.*, ?)?)"
    r"0x(?P<address>[0-9a-f]+)"
)
"""A jump or call in a file without symbols: no name follows the address."""
_X86_PREFIXES = {"notrack", "bnd", "repz", "repnz", "rep", "repe", "repne", "lock", "data16", "cs"}
_X86_PREFIXES |= {"ds", "es", "ss", "fs", "gs", "addr32", "xacquire", "xrelease"}
_BRANCH = re.compile(
    r"j(?!al)[a-z]*(?:,p[nt])?|loop(?:n?e)?|"  # x86, and j of RISC-V
    r"b(?:\.[a-z]{2,4})?|cbn?z|tbn?z|"  # aarch64
    r"b(?:eq|ne|lt|ge|gt|le|ltu|geu|gtu|leu)z?|c?\.?b(?:eqz|nez)|c\.j"  # RISC-V
)
_CALL = re.compile(r"callq?|bl|blr|jal|jalr|syscall|svc|ecall")


@dataclass(frozen=True, slots=True)
class Instruction:
    """One disassembled instruction.

    Attributes:
        address: in the object file.
        text: mnemonic and operands, without objdump's remark.
        target: where a direct branch or call goes, else None.
    """

    address: int
    text: str
    target: int | None

    @property
    def mnemonic(self) -> str:
        """The operation without prefixes such as ``notrack`` or ``{vex}``."""
        for word in self.text.split():
            if word not in _X86_PREFIXES and not word.startswith("{"):
                return word
        return self.text

    @property
    def is_branch(self) -> bool:
        """A jump, conditional or not; calls and returns are none."""
        return _BRANCH.fullmatch(self.mnemonic) is not None

    @property
    def is_call(self) -> bool:
        """A call of a function or of the system."""
        return _CALL.fullmatch(self.mnemonic) is not None


def availability() -> Availability:
    """Whether objdump is installed."""
    line = version_line(NAME, "objdump", INSTALL)
    if isinstance(line, Availability):
        return line
    return Availability(NAME, True, "disassembly of the hot loop", version=line.rpartition(" ")[2])


def argv(binary: Path, start: int, stop: int, *, x86: bool) -> tuple[str, ...]:
    """The command that disassembles [start, stop) of ``binary``, in AT&T syntax on x86."""
    syntax = ("-M", "att") if x86 else ()
    return (
        "objdump", "-d", "--no-show-raw-insn", "--wide", *syntax,
        f"--start-address={start:#x}", f"--stop-address={stop:#x}", str(binary),
    )  # fmt: skip


def disassemble(
    binary: Path, start: int, stop: int, *, x86: bool, folder: Path, name: str = NAME
) -> tuple[Instruction, ...]:
    """Run objdump over [start, stop) and parse its text, which is kept in ``folder``.

    Raises:
        UnavailableError: objdump is missing.
        ToolError: it failed on this binary.
        InputError: there is no code in the range.
    """
    if shutil.which("objdump") is None:
        raise UnavailableError(f"objdump is not installed; {INSTALL}")
    result = run_tool(
        argv(binary, start, stop, x86=x86), folder=folder, name=name, timeout_s=TIMEOUT_S
    )
    if result.returncode:
        words = result.stderr.strip().splitlines() or ["no message"]
        raise ToolError(f"objdump failed on {binary}: {words[-1]}")
    return parse(result.stdout)


def parse(text: str) -> tuple[Instruction, ...]:
    """Instructions in the order of the text.

    Raises:
        InputError: the text holds none.
    """
    found = []
    for line in text.splitlines():
        match = _LINE.match(line)
        if match is None:
            continue
        # objdump's remarks: "# 2004 <name>" behind rip-relative operands, "//" on aarch64
        body = re.split(r"\s+(?:#|//)\s", match["text"], maxsplit=1)[0]
        words = " ".join(body.split())
        if bare := _BARE.fullmatch(words):
            words = f"{bare['before']}{bare['address']} <?>"
        target = _TARGET.search(words)
        found.append(
            Instruction(
                address=int(match["address"], 16),
                text=words,
                target=int(target["address"], 16) if target else None,
            )
        )
    if not found:
        raise InputError("objdump's output holds no instructions in this range")
    return tuple(found)
