"""The llvm-mca collector: snippets, refusals, failures and bounds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from moe_prof.collectors import llvm_mca
from moe_prof.collectors.base import Availability
from moe_prof.collectors.hotloop import CountedInstruction, HotLoop
from moe_prof.collectors.llvm_mca import Mca
from moe_prof.collectors.llvm_mca_format import Bottleneck, parse
from moe_prof.collectors.scheduling_models import Target
from moe_prof.errors import ToolError, UnavailableError
from tests.collectors.fixture_files import recorded

MCA_14 = Mca("llvm-mca", 14, ("icelake-server",))
VERSION_14 = "Debian LLVM version 14.0.6"


def loop(*code: tuple[int, str, int | None], count: int = 10) -> HotLoop:
    """A loop of (address, text, target), every instruction executed ``count`` times."""
    body = tuple(
        CountedInstruction(a, text, count, target, text.startswith("j"), text.startswith("call"))
        for a, text, target in code
    )
    calls = tuple(i.text for i in body if i.is_call)
    return HotLoop("f", "/o", body[0].address, body[-1].address, True, body, count, 1.0, calls)


def fake_mca(folder: Path, name: str, version: str) -> None:
    """A program on the path that answers like llvm-mca."""
    path = folder / name
    path.write_text(
        "#!/bin/sh\n"
        f"[ \"$1\" = --version ] && echo '{version}' && exit 0\n"
        "printf 'Available CPUs for this target:\\n\\n"
        "  znver3 - Select the znver3 processor.\\n\\n"
        "Available features for this target:\\n\\n  avx - Enable AVX.\\n' >&2\n"
    )
    path.chmod(0o755)


def test_the_command_as_json():
    """Exact figures."""
    command = llvm_mca.argv("llvm-mca-14", "znver3", Path("/l.s"), json=True, iterations=100)
    assert command == (
        "llvm-mca-14", "-mcpu=znver3", "-iterations=100", "--instruction-info",
        "--resource-pressure", "--timeline=0", "--json", "/l.s",
    )  # fmt: skip


def test_the_command_as_text():
    """The bottleneck analysis exists as text only."""
    command = llvm_mca.argv("llvm-mca", "znver3", Path("/l.s"), json=False, iterations=100)
    assert ("--bottleneck-analysis" in command, "--json" in command) == (True, False)


def test_branch_targets_become_labels():
    """Inside the loop its own label, outside a common one."""
    code = loop(
        (0x10, "movsbl (%rdi,%rax,1),%ecx", None),
        (0x14, "je 90 <f+0x80>", 0x90),
        (0x18, "jne 10 <void g<a<b> >(int)+0x4>", 0x10),
    )
    assert llvm_mca.snippet(code) == (
        ".L10:\n\tmovsbl (%rdi,%rax,1),%ecx\n\tje .Lelsewhere\n\tjne .L10\n"
    )


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("cs nopw 0x0(%rax,%rax,1)", "nop"),
        ("data16 cs nopw 0x0(%rax,%rax,1)", "nop"),
        ("nopl 0x0(%rax)", "nop"),
        ("xchg %ax,%ax", "nop"),
        ("notrack jmp *%rax", "jmp *%rax"),
        ("vmovss 0x2ef4(%rip),%xmm0", "vmovss 0x2ef4(%rip),%xmm0"),
        ("{vex} vpdpbusd %ymm0,%ymm1,%ymm2", "{vex} vpdpbusd %ymm0,%ymm1,%ymm2"),
    ],
)
def test_objdumps_spelling_is_changed_where_llvm_needs_it(text, written):
    """Padding of any length is one nop; the rest stays."""
    assert llvm_mca.snippet(loop((0, text, None))) == f"\t{written}\n"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("tdpbssd %tmm0,%tmm1,%tmm2", "AMX tiles"),
        ("tileloadd (%rdi,%rax,1),%tmm0", "AMX tiles"),
        ("call 1050 <expf@plt>", r"calls another function \(call 1050 <expf@plt>\)"),
        ("(bad)", "objdump does not know"),
    ],
)
def test_what_no_model_can_answer_is_refused(text, reason):
    """llvm-mca would give a number for each of these."""
    with pytest.raises(UnavailableError, match=reason):
        llvm_mca.snippet(loop((0, text, None), (4, "jne 0 <f>", 0)))


def test_rare_instructions_are_not_simulated():
    """Only the usual path through the loop counts, without its exceptions."""
    code = loop((0, "addl %eax,%ebx", None), (4, "call 90 <throw>", None), (8, "jne 0 <f>", 0))
    rare = replace(code.instructions[1], count=1)
    code = replace(code, instructions=(code.instructions[0], rare, code.instructions[2]))
    assert llvm_mca.snippet(code) == ".L0:\n\taddl %eax,%ebx\n\tjne .L0\n"


@pytest.mark.parametrize(
    ("stderr", "message"),
    [
        (
            "<stdin>:1:1: error: invalid instruction mnemonic 'foo'\nfoo %rax\n^~~\n"
            "<stdin>:2:1: error: invalid instruction mnemonic 'bar'\nbar\n^~~\n",
            "does not know 2 instructions",
        ),
        (
            "error: found an unsupported instruction in the input assembly sequence.\n"
            "note: instruction: \tvpdpbusd\t%ymm0, %ymm1, %ymm2\n",
            "does not know at least 1 instruction: vpdpbusd %ymm0, %ymm1, %ymm2",
        ),
        (
            "'znver4' is not a recognized processor for this target (ignoring processor)\n",
            "llvm-mca 14 does not know the processor znver4",
        ),
    ],
)
@pytest.mark.parametrize("returncode", [0, 1])
def test_what_llvm_does_not_know_is_unavailable(stderr, message, returncode):
    """Whatever its exit status: some versions end with 0."""
    with pytest.raises(UnavailableError, match=message):
        llvm_mca.check_output("", stderr, returncode, mca=MCA_14, cpu="znver4")


def test_a_report_with_errors_beside_it_is_refused():
    """llvm-mca prints numbers for the rest of the snippet."""
    stderr = "<stdin>:1:1: error: invalid instruction mnemonic 'foo'\n"
    with pytest.raises(UnavailableError, match="does not know 1 instruction:"):
        llvm_mca.check_output(recorded("corpus/H05.txt"), stderr, 0, mca=MCA_14, cpu="x")


def test_an_empty_answer_is_a_tools_failure():
    """No report and no known reason."""
    with pytest.raises(ToolError, match=r"failed \(1\): error: no assembly"):
        llvm_mca.check_output("", "error: no assembly found\n", 1, mca=MCA_14, cpu="x")


def test_warnings_are_no_errors():
    """A report with a warning beside it is good."""
    llvm_mca.check_output("Iterations: 1", "warning: x\n", 0, mca=MCA_14, cpu="x")


def bounds(block: float, steady: float, bottleneck: Bottleneck | None) -> tuple[object, ...]:
    """What is made of a report with this block throughput and simulation."""
    report = replace(
        parse(recorded("llvm_mca/dot-14.json")), block_rthroughput=block, bottleneck=bottleneck
    )
    found = llvm_mca.interpret(report, cpu="icelake-server", steady_cycles=steady)
    return found.bound, found.throughput_cycles, found.dependency_cycles


CHAIN = Bottleneck(90.0, 5.0, 90.0, 90.0, 0.0, {})
PORTS = Bottleneck(90.0, 88.0, 1.0, 1.0, 0.0, {"ICXPort5": 88.0})


def test_a_loop_far_above_its_ports_is_bound_by_its_chain():
    """The simulated cycles are the chain's; the ports' bound stays beside it."""
    assert bounds(2.0, 8.0, CHAIN) == ("dependency", 2.0, 8.0)


def test_shared_ports_bind_more_than_their_groups_say():
    """llvm-mca's own figure is too low then."""
    assert bounds(5.2, 8.6, PORTS) == ("ports", 8.6, None)


def test_a_loop_at_its_ports_bound():
    """The port's figure is above that of the dispatch width, 7/6 here."""
    assert bounds(12.0, 12.0, PORTS) == ("ports", 12.0, None)


def test_a_loop_at_the_dispatch_width():
    """Seven micro-operations in six slots."""
    assert bounds(7 / 6, 1.28, CHAIN) == ("dispatch", 7 / 6, None)


def test_the_steady_state_is_never_below_the_bound():
    """Rounding of the simulation does not undercut it."""
    report = parse(recorded("llvm_mca/dot-14.json"))
    found = llvm_mca.interpret(report, cpu="x", steady_cycles=1.0)
    assert found.simulated_cycles == report.block_rthroughput


def test_uops_and_slots_of_a_recorded_loop():
    """Compare and jump are two micro-operations and one slot."""
    report = parse(recorded("llvm_mca/dot-14.json"))
    found = llvm_mca.interpret(report, cpu="x", steady_cycles=1.28)
    assert (found.instructions, found.uops, found.issue_slots) == (7, 7.0, 6.0)


def test_placeholders_are_no_answer():
    """An instruction that the model lists without data."""
    report = parse(recorded("llvm_mca/dot-14.json"))
    listing = (replace(report.listing[0], text="tdpbssd", latency=100), *report.listing[1:])
    with pytest.raises(UnavailableError, match="does not know 1 instruction: tdpbssd"):
        llvm_mca.interpret(replace(report, listing=listing), cpu="x", steady_cycles=1.0)


def test_without_llvm_mca_the_remedy_is_named(monkeypatch, tmp_path):
    """Missing is a state with a reason."""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert llvm_mca.find_mca() == Availability(
        "llvm_mca", False, "llvm-mca is not installed", "apt install llvm"
    )


def test_the_newest_version_is_taken(monkeypatch, tmp_path):
    """An unversioned name may be the older one."""
    fake_mca(tmp_path, "llvm-mca", VERSION_14)
    fake_mca(tmp_path, "llvm-mca-19", "Debian LLVM version 19.1.7")
    monkeypatch.setenv("PATH", str(tmp_path))
    found = llvm_mca.find_mca()
    assert isinstance(found, Mca)
    assert (found.program, found.version) == (str(tmp_path / "llvm-mca-19"), 19)


def test_processor_names_are_read_and_features_are_not(monkeypatch, tmp_path):
    """-mcpu=help lists both."""
    fake_mca(tmp_path, "llvm-mca", VERSION_14)
    monkeypatch.setenv("PATH", str(tmp_path))
    found = llvm_mca.find_mca()
    assert isinstance(found, Mca)
    assert found.processors == ("znver3",)


def test_a_core_without_model_is_not_available(monkeypatch, tmp_path):
    """The reason names the version and the core."""
    fake_mca(tmp_path, "llvm-mca", VERSION_14)
    monkeypatch.setenv("PATH", str(tmp_path))
    here = llvm_mca.availability(Target("x86_64", "haswell"))
    assert (here.usable, here.reason) == (
        False,
        "llvm 14 has no scheduling model of haswell or a relative",
    )


@pytest.mark.skipif(
    isinstance(llvm_mca.find_mca(), Availability), reason="llvm-mca is not installed"
)
def test_a_real_run_on_a_dependency_chain(tmp_path):
    """Four dependent multiplications of three cycles each on haswell."""
    code = loop(
        *((4 * i, "imul %rax,%rax", None) for i in range(4)),
        (0x10, "dec %rcx", None),
        (0x14, "jne 0 <f>", 0),
    )
    mca = llvm_mca.find_mca()
    assert isinstance(mca, Mca)
    if "haswell" not in mca.processors:
        pytest.skip("this llvm-mca is built without x86")
    found = llvm_mca.run(mca, "haswell", code, folder=tmp_path)
    assert (found.bound, found.dependency_cycles) == ("dependency", 12.0)


@pytest.mark.skipif(
    isinstance(llvm_mca.find_mca(), Availability), reason="llvm-mca is not installed"
)
def test_a_real_run_on_an_unknown_instruction(tmp_path):
    """One clear reason, no number."""
    mca = llvm_mca.find_mca()
    assert isinstance(mca, Mca)
    with pytest.raises(UnavailableError, match="does not know 1 instruction"):
        llvm_mca.run(mca, mca.processors[0], loop((0, "vnosuchthing %ymm0", None)), folder=tmp_path)
