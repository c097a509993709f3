"""``--target riscv64`` of counters, bench and hotspots: what is printed, what is refused."""

from __future__ import annotations

import shutil
from dataclasses import replace

import pytest

from moe_prof.collectors import gprof
from moe_prof.commands import emulated
from moe_prof.deadline import Deadline
from moe_prof.topdown.emulated import Emulation
from tests.kernels.riscv_builds import built
from tests.moe_prof.commands.running import main


def test_instructions_per_mac_fall_from_stage_to_stage(tmp_path):
    """Counted in the emulator: vectors need fewer than plain C++, tiles fewer than vectors."""
    built()  # skips where it cannot be had
    ran = main(
        "counters", "4,64,32,4,2", "--target", "riscv64", "--variant", "portable,rvv,ime",
        "--format", "json", "--output", tmp_path / "session",
    )  # fmt: skip
    assert ran.code == 0, ran.err
    rows = ran.rows
    per_mac = [rows[name, "instructions_per_mac"]["value"] for name in ("portable", "rvv", "ime")]
    assert per_mac == sorted(per_mac, reverse=True)
    assert rows["rvv", "instructions"]["provenance"] == "simulated"
    assert rows["rvv", "instructions"]["source"].startswith("emulated: counts only, no time")
    assert rows["ime", "instructions.matrix"]["value"] > 0
    assert ("rvv", "instructions.matrix") not in rows


def test_text_says_that_nothing_is_timed(tmp_path):
    """The table's foot names the emulator and that there is no time."""
    built()
    ran = main(
        "counters", "1,16,8,2,1", "--target", "riscv64", "--variant", "rvv", "--vector-bits", "128",
        "--output", tmp_path / "session",
    )  # fmt: skip
    assert ran.code == 0, ran.err
    assert "Emulated: counts only, no time." in ran.out
    assert "128 bits" in ran.out


def test_missing_emulator_is_named(monkeypatch, tmp_path):
    """Exit 3 with the install line, before anything is built."""
    found = emulated.qemu_user.availability()
    gone = type(found)(found.name, False, "qemu-riscv64 is not installed", "apt install qemu-user")
    monkeypatch.setattr(emulated.qemu_user, "availability", lambda: gone)
    ran = main("counters", "1,16,8,2,1", "--target", "riscv64", "--output", tmp_path / "session")
    assert ran.code == 3
    assert ran.complaints == [
        "moe-prof: nothing can be counted for riscv64 here: qemu-riscv64 is not installed; "
        "apt install qemu-user"
    ]


def test_phases_split_the_products(tmp_path):
    """The marks give gate/up twice the products of down, and the same instructions for each."""
    built()
    ran = main(
        "counters", "4,64,64,4,2", "--target", "riscv64", "--variant", "rvv", "--format", "json",
        "--output", tmp_path / "session",
    )  # fmt: skip
    assert ran.code == 0, ran.err
    phases = {
        row["phase"]: row["value"] for row in ran.document["rows"]
        if row["metric"] == "instructions" and row["phase"]
    }  # fmt: skip
    assert 1.5 < phases["gate_up"] / phases["down"] < 2.5
    assert sum(phases.values()) == ran.rows["rvv", "instructions"]["value"]


def test_bench_checks_and_counts_without_a_time(tmp_path):
    """Right against scalar in the emulator; a time and a speedup are missing with the reason."""
    built()
    ran = main(
        "bench", "4,64,32,4,2", "--target", "riscv64", "--variant", "rvv", "--format", "json",
        "--output", tmp_path / "session",
    )  # fmt: skip
    assert ran.code == 0, ran.err
    rows = ran.rows
    assert rows["rvv", "rel_rmse"]["value"] <= 1e-3
    assert rows["rvv", "instruction_reduction"]["value"] > 5
    assert rows["scalar", "instruction_reduction"]["value"] == 1
    for metric in ("time", "speedup"):
        missing = rows["rvv", metric]
        assert (missing["value"], missing["source"]) == (None, "emulated: counts only, no time")


def test_a_wrong_kernel_has_no_counts(monkeypatch, tmp_path):
    """Exit 6, its error in the rows, and neither counts nor a ratio."""
    built()
    right = Emulation.count

    def wrong(self, name, timeout_s, *, checked=False):
        found = right(self, name, timeout_s, checked=checked)
        if name == "scalar":
            return found
        return replace(found, wrong=True, result=replace(found.result, rel_rmse=0.5))

    monkeypatch.setattr(Emulation, "count", wrong)
    ran = main(
        "bench", "1,16,8,2,1", "--target", "riscv64", "--variant", "rvv", "--format", "json",
        "--output", tmp_path / "session",
    )  # fmt: skip
    assert ran.code == 6
    assert ran.complaints == ["moe-prof: variant rvv: wrong: rel_rmse 0.5 against scalar"]
    assert ran.rows["rvv", "instructions"]["value"] is None
    assert ran.rows["rvv", "instruction_reduction"]["value"] is None
    assert ran.rows["rvv", "rel_rmse"]["value"] == 0.5


def test_hotspots_name_functions_by_phase(tmp_path):
    """The product's function appears for gate/up and for down; the shares are the whole."""
    built()
    ran = main(
        "hotspots", "1,64,64,2,1", "--target", "riscv64", "--variant", "rvv", "--format", "json",
        "--output", tmp_path / "session",
    )  # fmt: skip
    assert ran.code == 0, ran.err
    shares = [row for row in ran.document["rows"] if row["metric"] == "self_share"]
    assert sum(row["value"] for row in shares) == pytest.approx(1)
    products = {row["phase"] for row in shares if row["source"].startswith("moe_qs8_gemm_1x16__")}
    assert products == {"gate_up", "down"}
    assert any("moe::packed::" in row["source"] for row in shares) or not shutil.which("c++filt")


def test_gprof_samples_the_emulator(tmp_path):
    """The build with -pg leaves its samples through the emulator, marked as simulated."""
    built()
    if not gprof.availability().usable:
        pytest.skip("gprof is not installed (apt install binutils)")
    ran = main(
        "hotspots", "1,64,64,2,1", "--target", "riscv64", "--variant", "portable", "--with",
        "gprof", "--format", "json", "--output", tmp_path / "session",
    )  # fmt: skip
    assert ran.code == 0, ran.err
    products = [
        row for row in ran.document["rows"]
        if row["metric"] == "self_share" and "gemm" in row["source"]
    ]  # fmt: skip
    assert products  # where in the order is for the samples to say
    assert {(row["provenance"], row["collector"]) for row in products} == {("simulated", "gprof")}


def test_compare_of_emulated_sessions(tmp_path):
    """Counts have ratios without intervals; other vector lengths are not compared unasked."""
    built()
    folders = {}
    for bits in ("128", "256"):
        folders[bits] = tmp_path / bits
        ran = main(
            "counters", "1,64,64,2,1", "--target", "riscv64", "--variant", "rvv", "--vector-bits",
            bits, "--output", folders[bits],
        )  # fmt: skip
        assert ran.code == 0, ran.err
    refused = main("compare", folders["128"], folders["256"])
    assert refused.code == 2
    assert "differ in path (rvv: rvv, VLEN 128, riscv64; rvv, VLEN 256, riscv64)" in refused.err
    ran = main("compare", folders["128"], folders["256"], "--allow", "path", "--format", "json")
    assert ran.code == 0, ran.err
    ratio = ran.rows["rvv", "instructions_ratio"]
    assert 0.3 < ratio["value"] < 1


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("bench", "--isa", "avx2"), "--isa has no meaning with --target riscv64; leave it out"),
        (("bench", "--vs", "packed"), "--vs has no meaning with --target riscv64; leave it out"),
        (("bench", "--processes", "3"), "--processes has no meaning with --target riscv64"),
        (("counters", "--repeat", "3"), "--repeat has no meaning with --target riscv64"),
        (("counters", "--threads", "4"), "programs for riscv64 are counted on one thread"),
        (("bench", "--build", "portable"), "the build that marks phases is counted"),
        (("hotspots", "--with", "perf"), "--with perf cannot look into an emulated program"),
        (("hotspots", "--lines"), "--lines: instructions are counted by function"),
        (("counters", "--variant", "packed"), "variant 'packed' is not in the build for riscv64"),
    ],
)
def test_what_has_no_meaning_is_refused(words, complaint, tmp_path):
    """Exit 2 and one line that names the option."""
    built()
    command, *options = words
    ran = main(
        command, "1,16,8,2,1", "--target", "riscv64", *options, "--output", tmp_path / "session"
    )
    assert ran.code == 2
    assert len(ran.complaints) == 1
    assert complaint in ran.complaints[0]


@pytest.mark.parametrize("command", ["bench", "counters", "hotspots"])
def test_length_of_registers_without_an_emulator_is_refused(command, tmp_path):
    """Exit 2 instead of a native run that never had such registers."""
    ran = main(command, "1,16,8,2,1", "--vector-bits", "128", "--output", tmp_path / "session")
    assert ran.code == 2
    assert ran.complaints == [
        "moe-prof: --vector-bits is for an emulated machine; add --target riscv64 or leave it out"
    ]


@pytest.mark.parametrize("option", [("--target", "riscv64"), ("--vector-bits", "512")])
def test_a_program_of_ones_own_is_not_emulated(option, tmp_path):
    """Exit 2 instead of counts of this machine under the name of another."""
    ran = main("counters", *option, "--output", tmp_path / "session", "--", "true")
    assert ran.code == 2
    assert ran.complaints == [
        f"moe-prof: {option[0]} is for variants, not for a program after --; leave it out"
    ]


@pytest.mark.parametrize("command", ["bench", "counters", "hotspots"])
def test_tiles_with_other_registers_are_unavailable(command, tmp_path):
    """Exit 3, for the workload did not fail, with the length to choose."""
    built()
    ran = main(
        command, "1,16,8,2,1", "--target", "riscv64", "--variant", "ime", "--vector-bits", "512",
        "--output", tmp_path / "session",
    )  # fmt: skip
    assert ran.code == 3
    assert "path ime needs vector registers of 256 bits, not 512" in ran.complaints[0]


def test_bench_of_all_goes_on_without_tiles(tmp_path):
    """Where some variants cannot run, the others are counted, and the reason is told."""
    built()
    ran = main(
        "bench", "1,16,8,2,1", "--target", "riscv64", "--variant", "rvv,ime", "--vector-bits",
        "128", "--format", "json", "--output", tmp_path / "session",
    )  # fmt: skip
    assert (ran.code, ran.complaints) == (0, [])
    assert ran.rows["rvv", "instructions"]["value"] > 0
    missing = ran.rows["ime", "instructions"]
    assert missing["value"] is None
    assert "needs vector registers of 256 bits" in missing["source"]


@pytest.mark.parametrize("command", ["bench", "counters"])
def test_what_came_too_late_names_the_limit(command, monkeypatch, tmp_path):
    """A variant for which no time is left is not started, and the limit is the reason."""
    built()
    monkeypatch.setattr(Deadline, "passed", True)
    ran = main(
        command, "1,16,8,2,1", "--target", "riscv64", "--variant", "rvv", "--max-time", "7s",
        "--format", "json", "--output", tmp_path / "session",
    )  # fmt: skip
    late = "the time limit of 7 s was reached before it was counted"
    assert ran.code == 3
    assert ran.complaints[0] == f"moe-prof: nothing could be counted: {late}"
