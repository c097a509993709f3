"""Outputs written from known values, as every version writes: reading gives the values back."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from moe_prof.errors import InputError
from moe_prof.importing.base import Labels
from moe_prof.importing.kinds import KINDS
from moe_prof.importing.recognise import read_text
from moe_prof.rows import Row
from tests.fuzz_import import damaged, outcome, seeds
from tests.invariants import broken_rules
from tests.moe_prof.importing.generators import GENERATORS
from tests.moe_prof.importing.written import Expected, Output

FEW = settings(
    derandomize=True, max_examples=25, deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)  # fmt: skip
LINE_KINDS = ("perf_stat_text", "perf_stat_csv", "perf_stat_json", "perf_report", "cg_annotate",
              "callgrind_out", "cachegrind_log", "toplev_csv", "moe_bench_log", "gprof_flat",
              "perf_script", "folded", "vtune_csv")  # fmt: skip


def rows_of(text: str) -> list[Row]:
    """All rows that are read from a text."""
    return [row for _, found in read_text(text.split("\n"), KINDS, Labels()) for row in found.rows]


def is_there(expected: Expected, rows: list[Row]) -> bool:
    """Whether a row has the metric, the value and the place."""
    return any(
        row.metric == expected.metric
        and expected.where in f"{row.source} {row.cpu} {row.thread} {row.phase}"
        and (
            row.value is None
            if expected.value is None
            else row.value is not None and math.isclose(row.value, expected.value, rel_tol=1e-9)
        )
        for row in rows
    )


@pytest.mark.parametrize("name", GENERATORS)
def test_written_values_are_read(name: str) -> None:
    """Every value comes back with its name and place, and all rows keep the rules."""

    @FEW
    @given(GENERATORS[name]())
    def check(output: Output) -> None:
        rows = rows_of(output.text)
        lost = [one for one in output.expected if not is_there(one, rows)]
        assert lost == [], output.text
        assert [bad for row in rows if (bad := broken_rules(row))] == []

    check()


@pytest.mark.parametrize("name", LINE_KINDS)
def test_a_damaged_line_costs_only_itself(name: str) -> None:
    """With one line made unreadable, at most the values of that line are lost."""

    @FEW
    @given(GENERATORS[name](), st.data())
    def check(output: Output, data: st.DataObject) -> None:
        lines = output.text.split("\n")
        whole = rows_of(output.text)
        rows_by_line = [n for n, line in enumerate(lines) if any(c.isdigit() for c in line)]
        place = data.draw(st.sampled_from(rows_by_line))
        kept = [*lines[:place], "@@@ damaged @@@", *lines[place + 1 :]]
        without = [*lines[:place], "", *lines[place + 1 :]]
        try:
            expected = rows_of("\n".join(without))
            found = rows_of("\n".join(kept))
        except InputError:  # a text whose only row is gone is refused
            return
        assert len(found) >= len(expected)
        assert len(whole) >= len(expected)

    check()


def test_damaged_recordings(tmp_path: Path) -> None:
    """A part of the fuzz run that is always the same: rows that keep the rules, or one error."""
    samples = seeds()
    path = tmp_path / "input"

    @settings(derandomize=True, max_examples=100, deadline=None,
              suppress_health_check=[HealthCheck.too_slow])  # fmt: skip
    @given(st.randoms(use_true_random=False))
    def check(rng: object) -> None:
        path.write_bytes(damaged(rng, samples))
        assert outcome(path)[1] == []

    check()
