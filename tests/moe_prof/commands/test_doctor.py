"""The doctor's output: rows, and text that fits."""

from __future__ import annotations

import io
import json

import pytest
from rich.console import Console

from moe_prof.checks import CHECKS, Finding
from moe_prof.cli import main
from moe_prof.collectors.base import Availability
from moe_prof.commands import doctor

FOUND = (
    Finding("build", Availability("compiler", True, "g++ 12.2")),
    Finding("collectors", Availability("perf stat", False, "not allowed", "sudo x", "6.1")),
)

EXPECTED_NAMES = {
    "portable", "native", "avx2", "avx_vnni", "avx512_vnni", "amx_int8", "rvv", "ime",
    "builtin", "perf stat", "perf topdown", "perf record", "VTune", "gprof", "callgrind",
    "qemu-user", "llvm-mca", "objdump",
}  # fmt: skip


def text(body, width):
    """The body as plain text."""
    buffer = io.StringIO()
    Console(file=buffer, width=width, no_color=True, highlight=False).print(body)
    return buffer.getvalue()


def test_rows_say_usable_and_why():
    """1 or 0, with reason and fix in source, the group in phase."""
    assert [
        (row.collector, row.variant, row.phase, row.metric, row.value, row.source)
        for row in doctor.rows(FOUND)
    ] == [
        ("doctor", "compiler", "build", "usable", 1.0, "g++ 12.2"),
        ("perf stat", "perf stat", "collectors", "usable", 0.0, "not allowed; fix: sudo x"),
    ]


def test_text_has_reason_and_fix():
    """Two lines for what does not work."""
    shown = text(doctor.body(FOUND), 100)
    assert "no     perf stat      not allowed (version 6.1)" in shown
    assert "fix: sudo x" in shown
    assert "1 of 2 checks are good" in shown


@pytest.mark.parametrize("width", [60, 80, 100])
def test_text_fits_the_terminal(width):
    """No line is wider than asked, long commands included."""
    long = Finding("build", Availability("compiler", False, "why " * 40, "run/" * 60))
    assert max(len(line) for line in text(doctor.body((long,)), width).splitlines()) <= width


def test_every_named_collector_and_path_has_a_check():
    """The table covers what people ask about."""
    assert {check.name for check in CHECKS} >= EXPECTED_NAMES


def test_names_are_unique():
    """A row is found by its name."""
    assert len({check.name for check in CHECKS}) == len(CHECKS)


def test_doctor_runs_here(capsys):
    """On this machine: exit code 0, a row for every check, the baseline path usable."""
    assert main(["doctor", "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    usable = {row["variant"]: row["value"] for row in document["rows"]}
    assert set(usable) == {check.name for check in CHECKS}
    assert usable["portable"] == 1.0
    assert document["machine"]["usable_cpus"] >= 1
