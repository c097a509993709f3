"""Where samples lie: addresses as the files give them, whatever perf printed.

Source: the ELF specification, program headers; perf-script(1) prints places in the file for code
without symbols.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from moe_prof.kernels.elf import CodeSegment, code_segments
from moe_prof.program.speeds import Sample


def in_files(samples: Sequence[Sample]) -> list[Sample]:
    """With addresses as the files give them, where perf printed places in the file.

    It does so for stripped programs, which matters where the two differ: for those that are not
    position-independent.
    """
    segments: dict[str, tuple[CodeSegment, ...]] = {}
    for module in {sample.module for sample in samples if sample.module.startswith("/")}:
        with contextlib.suppress(OSError):
            segments[module] = code_segments(Path(module))
    return [in_file(sample, segments.get(sample.module, ())) for sample in samples]


def in_file(sample: Sample, segments: Sequence[CodeSegment]) -> Sample:
    """One sample, by the executable segments of its file; pure."""
    if any(0 <= sample.address - one.address < one.size_bytes for one in segments):
        return sample
    for one in segments:
        if 0 <= sample.address - one.offset < one.size_bytes:
            moved = one.address - one.offset
            registers = tuple(
                (name, value - moved if name == "rip" else value)
                for name, value in sample.registers
            )
            return replace(sample, address=sample.address + moved, registers=registers)
    return sample
