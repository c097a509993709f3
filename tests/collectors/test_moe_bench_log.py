"""Log lines of moe_bench and of the program that it follows."""

from __future__ import annotations

import pytest

from moe_prof.collectors.moe_bench_log import BenchRun, is_line, parse

SIZE = "problem size: num_tokens=1 d_model=8 d_ff=4 num_experts=16 top_k=2 (1000 iterations)"


def runs_of(*lines: str) -> list[BenchRun]:
    """The runs of these lines."""
    return parse(enumerate(lines, 1))[0]


def test_a_whole_run() -> None:
    """Sizes, times, error and speedup; other lines are passed over."""
    (run,) = runs_of(
        "---- Test 1 ----", SIZE, "Baseline time:  5.5 s", "warming up", "Optimized time: 250 ms",
        "Result is correct! (rel RMSE: 1.5e-08, worst token: 2e-07 at -1)", "Speedup: 22x",
    )  # fmt: skip

    assert run == BenchRun(
        shape=(1, 8, 4, 16, 2), iterations=1000, baseline_s=5.5, optimized_s=0.25, correct=True,
        rel_rmse=1.5e-8, worst_error=2e-7, speedup=22.0, line=2,
    )  # fmt: skip


def test_runs_are_told_apart() -> None:
    """A new size begins a run, and so does a line that the run already has."""
    runs = runs_of(SIZE, "Optimized time: 1 s", "Optimized time: 2 s", SIZE, "Optimized time: 3 s")

    assert [(run.optimized_s, run.shape is not None) for run in runs] == [
        (1.0, True), (2.0, True), (3.0, True),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("line", "correct"),
    [("Result is WRONG! (rel RMSE: 0.5, worst token: 1 at 3)", False),
     ("Result is incorrect! (rel RMSE: 0.5)", False), ("Result is correct!", True)],
)  # fmt: skip
def test_verdicts(line: str, correct: bool) -> None:
    """The program's word, whatever its case."""
    assert [run.correct for run in runs_of(line)] == [correct]


def test_a_cut_line_is_named() -> None:
    """It holds no value, and the others stay."""
    runs, warnings = parse(enumerate(["problem size: num_tokens=1 d_mo", "Optimized time: 2 s"], 1))

    assert [run.optimized_s for run in runs] == [2.0]
    assert warnings == ("line 1: this line was cut off: 'problem size: num_tokens=1 d_mo'",)


def test_source_text_is_no_log() -> None:
    """The words within quotes are a program's text, as an annotator shows it."""
    assert is_line("rank 0: Speedup: 3.5")
    assert not is_line('  printf("Speedup: %g\\n", 3);')
    assert not is_line("the speedup is 3")
