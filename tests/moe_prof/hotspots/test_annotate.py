"""Texts of instructions: few runs of objdump, nothing where there is no code."""

from __future__ import annotations

import pytest

from moe_prof.collectors.disassembly import Instruction
from moe_prof.errors import ToolError
from moe_prof.hotspots import annotate
from moe_prof.hotspots.summary import PlaceShare


def place(module, address):
    """An instruction."""
    return PlaceShare("f", str(module), "", None, address, 0.5, 1, False)


@pytest.fixture
def asked(monkeypatch):
    """Ranges that were disassembled; each gives one instruction at its begin."""
    ranges = []

    def disassemble(binary, start, stop, *, x86, folder, name):
        ranges.append((binary.name, start, stop))
        if binary.name == "broken":
            raise ToolError("objdump failed")
        return (Instruction(start, f"add at {start:x}", None),)

    monkeypatch.setattr(annotate, "disassemble", disassemble)
    return ranges


def test_near_addresses_are_read_in_one_go(asked, tmp_path):
    """Addresses far apart are two runs; each range ends behind its last instruction."""
    module = tmp_path / "b"
    module.touch()
    places = [place(module, at) for at in (0x100, 0x140, 0x900000)]
    texts = annotate.instruction_texts(places, tmp_path)
    assert asked == [("b", 0x100, 0x150), ("b", 0x900000, 0x900010)]
    assert texts[str(module), 0x100] == "add at 100"


def test_modules_without_code(asked, tmp_path):
    """The kernel is no file, and objdump may fail: the addresses stand alone then."""
    broken = tmp_path / "broken"
    broken.touch()
    places = [place("[kernel.kallsyms]", 16), place(broken, 16)]
    assert annotate.instruction_texts(places, tmp_path) == {}
    assert [name for name, _, _ in asked] == ["broken"]
