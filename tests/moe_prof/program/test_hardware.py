"""Counted values of a whole program, from recorded output of perf stat."""

from dataclasses import replace
from pathlib import Path

import pytest

from moe_prof.analysis.program_demands import Machine, ProgramEvidence
from moe_prof.analysis.program_verdict import judge_program
from moe_prof.collectors.perf_rows import Labels, rows
from moe_prof.collectors.perf_stat_csv import parse_csv
from moe_prof.collectors.perf_stat_text import parse_text
from moe_prof.program.hardware import evidence_from
from moe_prof.rows import Row

PERF = Path(__file__).parents[2] / "fixtures" / "perf"
PLAIN = ProgramEvidence(
    wall_s=1.0, user_s=1.0, sys_s=0.0, cpus=2, machine=Machine(clock_hz=4e9, width=6)
)


RECORDED = [
    (parse_csv, "spr_slots.csv", "instruction_bound"),
    (parse_text, "topdown_612.txt", "instruction_bound"),
    (parse_text, "zen4_pipeline.txt", "instruction_bound"),
]


@pytest.mark.parametrize(("parse", "name", "cause"), RECORDED)
def test_recorded_slots_name_the_cause(parse, name, cause):
    """Slots of a recorded run reach the verdict without any simulation."""
    report = parse((PERF / name).read_text())
    found = evidence_from(PLAIN, rows(report, Labels(scope="process")))
    assert judge_program(found).cause == cause


def test_counted_events_replace_simulated_ones():
    """Instructions and mispredictions of the hardware are kept before those of a simulator."""
    made = [
        Row(collector="perf_stat", metric=name, value=value, unit="1", scope="process")
        for name, value in (("instructions", 5e9), ("branch-misses", 2e8))
    ]
    found = evidence_from(replace(PLAIN, instructions=1.0), made)
    assert (found.instructions, found.mispredictions) == (5e9, 2e8)
    assert found.measured_instructions
    assert judge_program(found).cause == "branch_bound"
