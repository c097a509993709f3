"""Comparing sides: pairing of names and rounds, drift, counters, rows."""

import pytest

from moe_prof.analysis import comparison_rows
from moe_prof.analysis.comparison import Pair, compare, pairs_between, pairs_within
from moe_prof.errors import UsageError
from moe_prof.rows import Row
from tests.moe_prof.analysis.sessions import failed_rows, side, time_rows
from tests.moe_prof.analysis.timings import two_sides

PACKED = Pair("S1", "S1", "packed", "packed")


def scaled(samples, factor):
    """The same noise on another level."""
    return {key: value * factor for key, value in samples.items()}


def count(metric, value, *, variant="packed", phase=None, **changes):
    """A counter or a phase of one forward."""
    labels = {"scenario": "S1", "variant": variant, "unit": "1", "collector": "perf_stat"}
    return Row(metric=metric, value=value, phase=phase, **(labels | changes))


def test_one_run_is_paired():
    """Two variants of one run, sampled in the same rounds."""
    old, new = two_sides(0, "correlated", ratio=1.05)
    run = side("r", time_rows(old, variant="a"), time_rows(new, variant="b"))
    (found,) = compare(run, run, pairs_within(run, ("a", "b")))
    assert found.ratio.paired
    assert found.verdict == "slower"
    assert found.ratio.interval.value == pytest.approx(1.05, rel=0.01)


def test_rounds_that_are_not_told_pair_when_all_processes_have_as_many():
    """Sessions that name the process only."""
    old, new = two_sides(0, "correlated")
    run = side(
        "r", time_rows(old, variant="a", rounds=False), time_rows(new, variant="b", rounds=False)
    )
    (found,) = compare(run, run, pairs_within(run, ("a", "b")))
    assert found.ratio.paired


def test_rounds_that_are_not_told_do_not_pair_otherwise():
    """The slow one has every second round: which ones, nobody knows."""
    old, new = two_sides(0, "normal")
    fewer = {key: value for key, value in old.items() if key[1] % 2}
    run = side(
        "r", time_rows(fewer, variant="a", rounds=False), time_rows(new, variant="b", rounds=False)
    )
    (found,) = compare(run, run, pairs_within(run, ("a", "b")))
    assert not found.ratio.paired


def test_two_runs_are_unpaired():
    """Whatever their keys are."""
    old, new = two_sides(0, "normal")
    (found,) = compare(side("a", time_rows(old)), side("b", time_rows(new)), [PACKED])
    assert not found.ratio.paired
    assert found.verdict == "same"
    assert found.drift is None


def test_the_baselines_own_change_stretches_the_others():
    """Everything took 5 % longer in the second run: no verdict on packed from that."""
    old, new = two_sides(0, "normal")
    before = side("a", time_rows(old), time_rows(old, variant="scalar"))
    after = side("b", time_rows(scaled(new, 1.05)), time_rows(scaled(new, 1.05), variant="scalar"))
    packed, scalar = compare(before, after, pairs_between(before, after))
    assert packed.drift == pytest.approx(1.05, rel=0.01)
    assert packed.verdict == "too noisy"
    assert (scalar.drift, scalar.verdict) == (None, "slower")


def test_runs_that_differ_on_purpose_are_not_stretched():
    """Two machines: the baseline is another there as well."""
    old, new = two_sides(0, "normal", ratio=2.0)
    before = side("a", time_rows(old), time_rows(old, variant="scalar"))
    after = side("b", time_rows(new), time_rows(new, variant="scalar"))
    packed, _ = compare(before, after, pairs_between(before, after), alike=False)
    assert (packed.drift, packed.verdict) == (None, "slower")


def test_a_wrong_variant_has_no_ratio():
    """But its reason, on either side."""
    old, _ = two_sides(0, "normal")
    good, bad = side("a", time_rows(old)), side("b", failed_rows("wrong result: rel RMSE 0.3"))
    for before, after in ((good, bad), (bad, good)):
        (found,) = compare(before, after, [PACKED])
        assert (found.ratio, found.verdict) == (None, None)
        assert found.reason == "packed: wrong result: rel RMSE 0.3"


def test_an_imported_wrong_result_has_no_ratio():
    """A log of moe_bench says so in a row of its own."""
    old, new = two_sides(0, "normal")
    wrong = [count("correct", 0.0, collector="moe_bench")]
    (found,) = compare(side("a", time_rows(old)), side("b", time_rows(new), wrong), [PACKED])
    assert (found.ratio, found.reason) == (None, "packed: its result is wrong")


def test_other_tools_times_are_compared():
    """perf's elapsed time, of six repetitions; each is a process of its own."""
    labels = {"scenario": "S1", "variant": "packed", "collector": "perf_stat", "unit": "s"}

    def imported(level):
        return [
            Row(metric="time_elapsed", value=level + 0.001 * r, repeat=r, source="total", **labels)
            for r in range(6)
        ]

    (found,) = compare(side("a", imported(1.0)), side("b", imported(1.2)), [PACKED])
    assert (found.metric, found.verdict) == ("time_elapsed", "slower")


def test_counters_and_phases_are_ratios_without_verdict():
    """Of what both sides counted with the same tool."""
    old, new = two_sides(0, "normal")
    before = [
        count("instructions", 100.0), count("cycles", 7.0),
        count("IPC", 2.0, provenance="modelled"),
        count("phase_time", 2.0, phase="router", unit="s", collector="builtin"),
        count("branches", 3.0), count("zero", 0.0),
    ]  # fmt: skip
    after = [
        count("instructions", 150.0), count("IPC", 3.0, provenance="modelled"),
        count("phase_time", 1.0, phase="router", unit="s", collector="builtin"),
        count("branches", 3.0, collector="callgrind"), count("zero", 1.0),
    ]  # fmt: skip
    (found,) = compare(
        side("a", time_rows(old), before), side("b", time_rows(new), after), [PACKED]
    )
    assert [(c.metric, c.phase, c.ratio) for c in found.counts] == [
        ("instructions", None, 1.5), ("phase_time", "router", 0.5),
    ]  # fmt: skip


def test_names_pair_and_so_do_the_two_left_over():
    """scalar with scalar, and one library with the other."""
    old, _ = two_sides(0, "normal")
    before = side("a", time_rows(old, variant="scalar"), time_rows(old, variant="./old.so"))
    after = side("b", time_rows(old, variant="./new.so"), time_rows(old, variant="scalar"))
    assert [(p.old, p.new) for p in pairs_between(before, after)] == [
        ("scalar", "scalar"), ("./old.so", "./new.so"),
    ]  # fmt: skip


def test_names_can_be_paired_by_hand():
    """``--variant OLD=NEW``."""
    old, _ = two_sides(0, "normal")
    before = side("a", time_rows(old, variant="x"), time_rows(old, variant="y"))
    after = side("b", time_rows(old, variant="y"), time_rows(old, variant="z"))
    assert [(p.old, p.new) for p in pairs_between(before, after, ("x=z", "y"))] == [
        ("x", "z"), ("y", "y"),
    ]  # fmt: skip
    with pytest.raises(UsageError, match="the new session has no variant 'x'; it has: y, z"):
        pairs_between(before, after, ("x",))


def test_nothing_in_common_is_said():
    """With what each has."""
    old, _ = two_sides(0, "normal")
    before = side("a", time_rows(old, variant="x"), time_rows(old, variant="y"))
    after = side("b", time_rows(old, variant="z"))
    with pytest.raises(UsageError, match="x in S1, y in S1, the new one z in S1"):
        pairs_between(before, after)


def test_one_side_needs_two_names():
    """Else there is nothing to compare."""
    old, _ = two_sides(0, "normal")
    run = side("a", time_rows(old, variant="x"), time_rows(old, variant="y"))
    with pytest.raises(UsageError, match="it has: x, y"):
        pairs_within(run, ("x",))
    with pytest.raises(UsageError, match="no variant 'q'"):
        pairs_within(run, ("x", "q"))


def test_rows_of_a_comparison():
    """The ratio, its interval, the effect, the verdict in ``source``, a counter."""
    old, new = two_sides(0, "normal", ratio=1.05)
    before = side("a", time_rows(old), [count("instructions", 100.0)])
    after = side("b", time_rows(new), [count("instructions", 150.0)])
    rows = {row.metric: row for row in comparison_rows.rows(compare(before, after, [PACKED]))}
    assert list(rows) == [
        "time_ratio", "time_ratio_ci_low", "time_ratio_ci_high", "effect_size", "comparison",
        "instructions_ratio",
    ]  # fmt: skip
    low, value, high = (rows[f"time_ratio{end}"].value for end in ("_ci_low", "", "_ci_high"))
    assert 1 < low < value < high
    assert (rows["comparison"].value, rows["comparison"].source) == (None, "slower")
    assert rows["time_ratio"].source == "time over that of packed in a; unpaired: two runs"
    assert {row.run_id for row in rows.values()} == {"b"}
    assert rows["instructions_ratio"].value == 1.5


def test_rows_without_a_ratio_have_the_reason():
    """Never a 0."""
    old, _ = two_sides(0, "normal")
    found = compare(side("a", time_rows(old)), side("b", failed_rows("crashed")), [PACKED])
    rows = comparison_rows.rows(found)
    assert [(row.metric, row.value, row.status) for row in rows] == [
        ("time_ratio", None, "not_supported"), ("comparison", None, "not_supported"),
    ]  # fmt: skip
    assert {row.source for row in rows} == {"packed: crashed"}
