"""The emulator's collector: command, what the plugin wrote, how runs fail."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from moe_prof.collectors import qemu_user
from moe_prof.errors import InputError, ToolError, WorkloadError
from tests.collectors.fixture_files import recorded


def test_the_command_marks_the_region():
    """The plugin goes before qemu's own options, the workload behind them."""
    command = qemu_user.argv(
        ["./w", "1"], emulator=["qemu-riscv64", "-cpu", "rv64"], plugin=Path("/p.so"),
        out_file=Path("/o/counts.txt"),
    )  # fmt: skip
    assert command == (
        "qemu-riscv64", "-plugin",
        "/p.so,out=/o/counts.txt,begin=_ZN5bench6Region5begin,end=_ZN5bench6Region3end,"
        "mark=moe_phase_mark_",
        "-cpu", "rv64", "./w", "1",
    )  # fmt: skip


def test_what_stands_in_for_an_instruction_is_left_out():
    """The handler's own instructions, its way back and the marks count apart; vmadot stays."""
    counts = qemu_user.parse(recorded("qemu_user/ime.txt"))
    assert counts.instructions == 19020
    assert counts.left_out == 523025
    assert counts.by_kind()["matrix"] == 768
    symbols = {symbol for symbol, _ in counts.by_symbol()}
    assert "ime_emulator_trap" not in symbols
    assert not any(symbol.startswith(qemu_user.MARK) for symbol in symbols)


def test_one_function_serves_two_phases():
    """The marks tell the product of gate and up from that of down, kind by kind."""
    counts = qemu_user.parse(recorded("qemu_user/ime.txt"))
    assert counts.by_phase() == {
        "router": 3868, "quantize": 509, "bucket": 572, "gate_up": 4292, "activation": 3416,
        "down": 5204, "combine": 704, "none": 455,
    }  # fmt: skip
    assert counts.by_symbol()["moe_qs8_gemm_4x16c8__ime", "gate_up"] == 1976
    assert counts.by_symbol()["moe_qs8_gemm_4x16c8__ime", "down"] == 1400
    matrix = {phase: counts.by_kind(phase).get("matrix") for phase in ("gate_up", "down", "router")}
    assert matrix == {"gate_up": 512, "down": 256, "router": None}


@pytest.mark.parametrize("text", ["", "incomplete\n", "12 integer down main\n"])
def test_counts_without_an_end_are_refused(text):
    """A program that did not reach its second mark has no counts, not small ones."""
    with pytest.raises(InputError, match="not complete"):
        qemu_user.parse(text)


@pytest.mark.parametrize(
    "line",
    [
        "-1 integer down main",
        "1 magic down main",
        "1.5 integer down main",
        "1 integer main",
        "integer",
    ],
)
def test_lines_without_sense_are_refused(line):
    """The line is quoted."""
    with pytest.raises(InputError, match="makes no sense"):
        qemu_user.parse(f"{line}\ncomplete\n")


@pytest.mark.parametrize(
    ("script", "error", "words"),
    [
        ("import sys; sys.exit('moe_bench: no')", WorkloadError, "exit code 1: moe_bench: no"),
        ("import sys; sys.exit('unknown option plugin')", ToolError, "plugins need the dynamic"),
        ("", ToolError, "takes no plugins"),
        ("import sys; sys.exit(6)", ToolError, "takes no plugins"),
    ],
)
def test_failing_runs_say_why(script, error, words, tmp_path):
    """The program's fault is told from an emulator that takes no plugins."""
    with pytest.raises(error, match=words):
        qemu_user.run(
            [sys.executable, "-c", script], out_file=tmp_path / "none", folder=tmp_path,
            timeout_s=60,
        )  # fmt: skip


def test_plugin_compiles_without_warnings_and_once(tmp_path):
    """The shared object is made for equal sources once; the compiler has nothing to say."""
    if shutil.which("cc") is None:
        pytest.skip("no C compiler")
    plugin = qemu_user.build_plugin(tmp_path)
    made = plugin.stat().st_mtime_ns
    assert (qemu_user.build_plugin(tmp_path), plugin.stat().st_mtime_ns) == (plugin, made)
    argv = ["cc", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", str(qemu_user.PLUGIN_SOURCE)]
    subprocess.run(argv, check=True)
