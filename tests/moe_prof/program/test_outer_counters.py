"""Registers that count repetitions: found in samples, and held against what was simulated."""

import platform
import shutil
import subprocess

import pytest

from moe_prof.collectors import callgrind_format
from moe_prof.program.outer_counters import Moving, moving, scale, scale_by
from moe_prof.program.speeds import Sample

FOUND = {"rbx": Moving(870e3, 0.9), "r12": Moving(-870e3, 0.9)}


def samples(count=40, thread=1, **paces):
    """One a millisecond, at two places by turns; registers move by so much a second."""
    made = []
    for n in range(count):
        registers = tuple((name, round(5e9 + n * pace / 1000)) for name, pace in paces.items())
        made.append(Sample(thread, "f", "p", 0x10 + 16 * (n % 2), registers, period_s=0.001))
    return made


def test_a_register_that_moves_at_one_pace():
    """Wherever the samples are; not one that stands still or jumps."""
    found = moving(samples(rbx=870e3, r12=-870e3, rax=0.0))
    assert {name: (round(one.per_s), one.share) for name, one in found.items()} == {
        "rbx": (870_000, 1.0), "r12": (-870_000, 1.0),
    }  # fmt: skip
    jumping = [
        Sample(1, "f", "p", 0x10, (("rax", n * 7919 * n % 9973),), period_s=0.001)
        for n in range(40)
    ]
    assert moving(jumping) == {}
    assert moving([]) == {}


def test_the_busiest_thread_counts():
    """The other one has few samples."""
    found = moving([*samples(9, 2, rbx=1e6), *samples(40, 1, rbx=2e6)])
    assert round(found["rbx"].per_s) == 2_000_000


def test_whole_by_the_instruction_that_moves_it():
    """870,000 a second for 0.9 of 2 s, of which 1,566 were simulated: the part is a thousandth."""
    texts = [("mov %eax,%ebx", 1566), ("add $0x1,%ebx", 1566), ("imul %rcx,%rax", 10**6)]
    assert scale_by(FOUND, texts, user_s=2.0) == pytest.approx(1000.0)
    assert scale_by(FOUND, [("sub $0x2,%r12", 783)], user_s=2.0) == pytest.approx(1000.0)


@pytest.mark.parametrize(
    "texts",
    [
        [("add $0x1,%ebx", 1566), ("add $0x1,%ebx", 900)],  # which of the two is it?
        [("sub $0x1,%ebx", 1566)],  # the other way
        [("add $0x1,%ecx", 1566)],
        [("add %eax,%ebx", 1566)],
        [],
    ],
)
def test_no_register_tells(texts):
    """Then nothing is said."""
    assert scale_by(FOUND, texts, user_s=2.0) is None


def test_code_that_cannot_be_read(tmp_path):
    """No program there: nothing is said."""
    text = "# callgrind format\npositions: instr\nevents: Ir\nob=/p\nfl=f.c\nfn=f\n0x10 500\n"
    light = callgrind_format.parse(text)
    assert scale(light, FOUND, "/p", folder=tmp_path, user_s=1.0) is None
    assert scale(light, {}, "/p", folder=tmp_path, user_s=1.0) is None
    assert scale(light, FOUND, "/other", folder=tmp_path, user_s=1.0) is None


@pytest.mark.skipif(shutil.which("objdump") is None, reason="objdump is not installed")
def test_instructions_of_a_real_program(compiled):
    """A loop that calls a short function: its counter is found in the code of main."""
    program, address, bits = compiled
    text = f"# callgrind format\npositions: instr\nevents: Ir\nob={program}\nfl=f.c\nfn=main\n"
    light = callgrind_format.parse(f"{text}{address:#x} 1000\n")
    found = {f"r{bits}": Moving(1e6, 1.0)}
    assert scale(light, found, str(program), folder=program.parent, user_s=2.0) == 2000.0


@pytest.fixture
def compiled(tmp_path):
    """A program of one known loop, the address of what counts in it, and its register's name."""
    compiler = shutil.which("cc")
    if compiler is None or platform.machine() != "x86_64":
        pytest.skip("no C compiler for x86-64 is installed")
    source = tmp_path / "loop.s"
    source.write_text(
        ".globl main\nmain:\n xor %ebx,%ebx\n.globl here\nhere:\n add $1,%ebx\n"
        " cmp $9,%ebx\n jne here\n xor %eax,%eax\n ret\n"
        '.section .note.GNU-stack,"",@progbits\n'
    )
    program = tmp_path / "loop"
    subprocess.run([compiler, "-o", program, source], check=True)
    table = subprocess.run(["nm", program], check=True, capture_output=True, text=True).stdout
    (line,) = (one for one in table.splitlines() if one.endswith(" here"))
    return program, int(line.split()[0], 16), "bx"
