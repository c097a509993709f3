"""The page of ``bench`` from a hand-made measurement."""

import io

import pytest
from rich.console import Console

from moe_prof.collectors.builtin import timing_rows
from moe_prof.kernels.table import BY_NAME
from moe_prof.measure import Measurement, VariantTiming
from moe_prof.render.bench_table import bench_body
from moe_prof.scenario import Scenario

SCENARIO = Scenario(3, 16, 8, 4, 2)
NAME = max(BY_NAME, key=len)


def timing(name, time_s, **changes):
    """Nine samples a third apart, of 1024 threads."""
    samples = {(0, index): time_s * (1 + index % 3 / 3) for index in range(9)}
    values = {
        "variant": name, "status": "ok", "isa": "avx512_vnni", "threads": 1024, "loops": 1,
        "info": {"microkernel": "mk"}, "rel_rmse": 1.23e-7, "worst_error": 1e-7,
        "samples_s": samples, "cpu_s": samples,
    }  # fmt: skip
    return VariantTiming(**(values | changes))


def page(*timings, width):
    """What is printed on that width."""
    measurement = Measurement(
        timings=timings, processes=1, interrupted=False, checked_tokens=3, notes=(), elapsed_s=1.0
    )
    rows = timing_rows(measurement, SCENARIO, usable_cpus=2)
    out = io.StringIO()
    console = Console(file=out, width=width, no_color=True, highlight=False)
    console.print(bench_body(measurement, SCENARIO, (), rows, 2))
    return out.getvalue()


@pytest.mark.parametrize("width", [100, 80, 60])
def test_names_and_figures_are_whole(width):
    """The longest name beside every figure with its unit and mark, on any width."""
    made = (timing("scalar", 123.4), timing("autovec", 12.34), timing(NAME, 123.4e-6))
    shown = page(*made, width=width)
    assert max(map(len, shown.splitlines())) <= width
    assert "…" not in shown
    mine = [line for line in shown.splitlines() if line.startswith(f"{NAME} ")]
    cells = [" ".join(line.split()[1:]) for line in mine]
    found = " ".join(cells)
    figures = ("avx512_vnni", "1024!", "165 us", "123 .. 206 us", "1.2e-07")
    assert [figure for figure in figures if figure not in found] == []
    assert "1000000x" in found.replace("1e+06x", "1000000x")
    assert "100000x" in found.replace("1e+05x", "100000x")


def test_noise_takes_the_place_of_a_speedup():
    """A time whose interval is wider than itself gives no ratio."""
    wild = {(0, index): (9.0 if index % 2 else 1.0) for index in range(9)}
    shown = page(timing("scalar", 1.0), timing("packed", 1.0, samples_s=wild), width=100)
    (line,) = [line for line in shown.splitlines() if line.startswith("packed ")]
    assert "too noisy" in line
    assert "x" not in line.replace("avx512_vnni", "")
