"""Repetitions: numbers, means, what has none."""

from __future__ import annotations

from moe_prof.importing.repeats import numbered, with_means
from moe_prof.rows import Row


def row(value: float | None, **fields: object) -> Row:
    """A row of perf stat."""
    defaults: dict[str, object] = {
        "collector": "perf_stat", "metric": "cycles", "unit": "1", "value": value,
        "status": "ok" if value is not None else "not_counted",
        "provenance": "measured" if value is not None else "unavailable",
    }  # fmt: skip
    return Row(**{**defaults, **fields})  # type: ignore[arg-type]


def test_mean_and_deviation() -> None:
    """The mean of what was counted, with the number of counts; the worst status stays."""
    rows = [*numbered([row(1.0)], 0), *numbered([row(3.0, status="multiplexed", mux_pct=50.0)], 1)]
    mean = with_means(rows)[-1]

    assert (mean.value, mean.n, mean.repeat, mean.status, mean.mux_pct) == (
        2.0, 2, None, "multiplexed", 50.0,
    )  # fmt: skip


def test_a_missing_count_is_no_zero() -> None:
    """It is left out of the mean; where all are missing, the mean is too."""
    one = with_means([*numbered([row(4.0)], 0), *numbered([row(None)], 1)])[-1]
    none = with_means(numbered([row(None)], 0))[-1]

    assert (one.value, one.n, none.value, none.provenance) == (4.0, 1, None, "unavailable")


def test_places_stay_apart() -> None:
    """CPUs, threads and functions have means of their own; intervals have none."""
    rows = numbered(
        [row(1.0, cpu="CPU0"), row(2.0, cpu="CPU1"), row(5.0, time_s=0.0),
         row(3.0, scope="function", source="f"), row(4.0, scope="function", source="g")], 0,
    )  # fmt: skip

    assert [mean.value for mean in with_means(rows)[len(rows) :]] == [1.0, 2.0, 3.0, 4.0]
