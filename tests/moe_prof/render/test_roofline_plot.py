"""The roofline's picture: every line and point is named, and no name covers another."""

import itertools

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Annotation, Text

from moe_prof.analysis.ceilings import Ceiling, Ceilings
from moe_prof.analysis.roofline_points import Point
from moe_prof.render.roofline_plot import draw

RATES = {
    "int8_portable": 95e9, "int8_avx2": 191e9, "int8_avx512_vnni": 473e9, "fp32_portable": 54e9,
    "fp32_avx2": 118e9,
}  # fmt: skip
READS = {"read_l1": 442e9, "read_l2": 217e9, "read_l3": 130e9, "read_memory": 35e9}
CEILINGS = Ceilings((
    *(Ceiling(name, 2, value, "MAC/s", "measured", "") for name, value in RATES.items()),
    *(Ceiling(name, 2, value, "bytes/s", "measured", "") for name, value in READS.items()),
))  # fmt: skip


def point(variant, rate, *, scenario="S1", phase=None, intensity=1.0):
    """A point whose roofs do not matter to the picture."""
    return Point(scenario, variant, phase, 2, "avx2", intensity, rate, 2e11, None, "memory", "l2")


CROWD = [
    point(f"variant-{number}", 1e10 * (1 + 0.03 * number), scenario=scenario, intensity=intensity)
    for scenario, intensity in (("S1", 1.0), ("S3", 37.0))
    for number in range(8)
]


def named(points, ceilings=CEILINGS):
    """Words and box of every name in the picture."""
    figure = Figure()
    draw(figure, points, ceilings)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    (axes,) = figure.axes
    found = {}
    for text in axes.texts:
        assert isinstance(text, Annotation)
        text.update_positions(canvas.get_renderer())
        found[text.get_text()] = (
            text.get_rotation(), Text.get_window_extent(text, canvas.get_renderer())
        )  # fmt: skip
    return found, axes


@pytest.fixture(scope="module")
def crowd():
    """Names and axes of the picture of many points."""
    return named(CROWD)


def test_every_line_and_point_is_named(crowd):
    """Levels and rates with their values; points by scenario where there are several."""
    found, _ = crowd
    for point_ in CROWD:
        assert f"{point_.scenario} {point_.variant}" in found
    assert "L2 read 217 GB/s" in found
    assert "memory read 35.0 GB/s" in found
    assert "int8 avx512_vnni 473 GMAC/s" in found
    assert len(found) == len(CROWD) + len(RATES) + len(READS)


def test_no_name_covers_another(crowd):
    """Sixteen points, eight of them nearly at the same place twice."""
    found, _ = crowd
    level = [box for rotation, box in found.values() if not rotation]
    assert [pair for pair in itertools.combinations(level, 2) if pair[0].overlaps(pair[1])] == []


def test_names_stay_inside(crowd):
    """Nothing is cut off at the picture's edge."""
    found, axes = crowd
    for _, box in found.values():
        assert axes.bbox.x0 <= box.x0
        assert box.x1 <= axes.bbox.x1


def test_one_scenario_needs_no_name():
    """Variants alone; phases have shapes and a legend instead of names."""
    found, axes = named([point("packed", 1e10), point("packed", 2e10, phase="router")])
    assert "packed" in found
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["forward", "router"]


def test_ceilings_alone_are_a_picture():
    """Without points, and without some of the ceilings."""
    found, axes = named([], Ceilings(CEILINGS.entries[:1]))
    assert list(found) == ["int8 portable 95.0 GMAC/s"]
    assert axes.get_legend() is None
    assert named([], Ceilings(()))[0] == {}


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_it_is_saved(tmp_path, suffix):
    """As pixels and as vectors."""
    figure = Figure()
    draw(figure, CROWD[:2], CEILINGS)
    figure.savefig(tmp_path / f"roof.{suffix}")
    assert (tmp_path / f"roof.{suffix}").stat().st_size > 10_000
