"""The roofline as a picture: ceilings as named lines, points with names that do not overlap.

Both axes are logarithmic. A rising line is a level's read bandwidth, a level line an arithmetic
rate, all of the largest team among the points. Colours tell variants, shapes tell phases.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Annotation, Text
from matplotlib.transforms import Bbox

from moe_prof.analysis.ceilings import LEVELS, Ceiling, Ceilings
from moe_prof.analysis.roofline_points import Point
from moe_prof.units import count_text

SHAPES = {None: "o", "router": "D", "gate_up": "^", "down": "v"}
SIZE_INCHES = (9.6, 6.0)
DPI = 120
_GREY = "#666666"
_PAPER = {"boxstyle": "square,pad=0.05", "fc": "white", "ec": "none", "alpha": 0.75}
"""Behind words, so that lines do not cross them."""
_OFFSETS_PT = tuple(
    (radius * math.cos(angle), radius * math.sin(angle))
    for radius in (9, 16, 26, 38, 54, 72)
    for angle in (0.5, -0.5, 2.6, -2.6, 1.57, -1.57)
)
"""Where a name may stand around its point, the nearest places first."""


def draw(
    figure: Figure,
    points: Sequence[Point],
    ceilings: Ceilings,
    *,
    threads: int | None = None,
    size_inches: tuple[float, float] = SIZE_INCHES,
) -> None:
    """Draw the roofline into ``figure``.

    Args:
        threads: whose ceilings; by default those of the largest team among the points.
    """
    teams = ceilings.thread_counts or (1,)
    team = threads or max((point.threads for point in points), default=teams[-1])
    figure.set_size_inches(*size_inches)
    axes = figure.add_subplot()
    axes.set_xscale("log")
    axes.set_yscale("log")
    view = _view(points, ceilings, team)
    axes.set_xlim(view.left, view.right)
    axes.set_ylim(view.bottom, view.top)
    axes.set_xlabel("arithmetic intensity, MAC per byte of weights read once")
    axes.set_ylabel("useful MAC/s")
    axes.yaxis.set_major_formatter(lambda value, _: count_text(value))
    axes.grid(which="major", alpha=0.25)
    axes.set_title(f"Roofline, {team} thread{'s' if team > 1 else ''}")
    figure.tight_layout()
    canvas = FigureCanvasAgg(figure)
    canvas.draw()  # type: ignore[no-untyped-call]
    placed = _Labels(axes, canvas)
    variants = dict.fromkeys(point.variant for point in points)
    colours = {name: f"C{place % 10}" for place, name in enumerate(variants)}
    for point in points:
        _mark(axes, point, colours[point.variant])
    placed.keep_off(points)
    _lines(axes, placed, ceilings, team, view)
    for point in points:
        if point.phase is None:
            name = _name(point, points)
            placed.around(name, (point.intensity, point.rate), colours[point.variant])
    _legend(axes, points)


@dataclass(frozen=True, slots=True)
class _View:
    """The picture's corners in data units, and the highest arithmetic rate."""

    left: float
    right: float
    bottom: float
    top: float
    peak: float


def _view(points: Sequence[Point], ceilings: Ceilings, team: int) -> _View:
    """All points, and every ridge of the levels under the best rate."""
    best = ceilings.best_int8(team)
    peak = best.value if best is not None and best.value else 1e9
    slow = ceilings.best_fp32(team)
    reads = [entry.value for entry in _reads(ceilings, team) if entry.value]
    ridges = [peak / read for read in reads] or [1.0]
    xs = [*ridges, *(point.intensity for point in points)]
    floor = slow.value if slow is not None and slow.value else peak
    ys = [peak, floor / 10, *(point.rate for point in points)]
    return _View(min(xs) / 6, max(xs) * 8, min(ys) / 4, max(*ys, peak) * 3, peak)


def _lines(axes: Axes, placed: _Labels, ceilings: Ceilings, team: int, view: _View) -> None:
    for entry in _reads(ceilings, team):
        assert entry.value is not None
        ridge = view.peak / entry.value
        axes.plot(
            [view.left, ridge], [view.left * entry.value, view.peak], color=_GREY, linewidth=1
        )
        level = entry.name.removeprefix("read_")
        words = f"{level if level == 'memory' else level.upper()} read {count_text(entry.value)}B/s"
        start = max(view.left, view.bottom / entry.value)
        placed.along(words, entry.value, start, ridge)
    for entry in _rates(ceilings, team):
        assert entry.value is not None
        axes.axhline(entry.value, color=_GREY, linewidth=1, linestyle=_style(entry))
        kind, _, path = entry.name.partition("_")
        placed.beside(f"{kind} {path} {count_text(entry.value)}MAC/s", entry.value)


def _reads(ceilings: Ceilings, team: int) -> list[Ceiling]:
    found = (ceilings.find(f"read_{level}", team) for level in LEVELS)
    return [entry for entry in found if entry is not None and entry.value]


def _rates(ceilings: Ceilings, team: int) -> list[Ceiling]:
    """Arithmetic rates, the highest first."""
    found = [
        entry
        for entry in ceilings.entries
        if entry.threads == team and entry.unit == "MAC/s" and entry.value
    ]
    return sorted(found, key=lambda entry: -(entry.value or 0.0))


def _style(entry: Ceiling) -> str:
    return "-" if entry.name.startswith("int8") else "--"


def _mark(axes: Axes, point: Point, colour: str) -> None:
    whole = point.phase is None
    axes.plot(
        [point.intensity], [point.rate], SHAPES.get(point.phase, "s"), color=colour,
        markersize=8 if whole else 5, alpha=1.0 if whole else 0.7,
        markeredgecolor="black" if whole else colour, markeredgewidth=0.8, zorder=3,
    )  # fmt: skip


def _legend(axes: Axes, points: Sequence[Point]) -> None:
    phases = [phase for phase in SHAPES if any(point.phase == phase for point in points)]
    if phases in ([], [None]):
        return
    handles = [
        Line2D([], [], marker=SHAPES[phase], color=_GREY, linestyle="", label=phase or "forward")
        for phase in phases
    ]
    axes.legend(handles=handles, loc="lower right", fontsize=8, framealpha=0.9)


def _name(point: Point, points: Sequence[Point]) -> str:
    """With the scenario where there are several."""
    several = len({one.scenario for one in points}) > 1
    return f"{point.scenario} {point.variant}" if several else point.variant


class _Labels:
    """Places texts so that none covers another or a point."""

    def __init__(self, axes: Axes, canvas: FigureCanvasAgg) -> None:
        self._axes, self._canvas = axes, canvas
        self._taken: list[Bbox] = []

    def keep_off(self, points: Sequence[Point]) -> None:
        """Points are no place for texts."""
        for point in points:
            x, y = self._axes.transData.transform((point.intensity, point.rate))
            self._taken.append(Bbox.from_extents(x - 6, y - 6, x + 6, y + 6))

    def beside(self, words: str, height: float) -> None:
        """At the right edge above a level line or below it, else further left, else nowhere."""
        for right in (0.99, 0.78, 0.57, 0.36, 0.2):
            for up in (True, False):
                text = self._axes.annotate(
                    words, (right, height), xycoords=("axes fraction", "data"),
                    xytext=(0, 2 if up else -2), textcoords="offset points", fontsize=7,
                    color=_GREY, ha="right", va="bottom" if up else "top", bbox=_PAPER,
                )  # fmt: skip
                if self._keep(text):
                    return

    def along(self, words: str, slope: float, start: float, end: float) -> None:
        """Along a rising line, where there is room."""
        low, high = math.log(start), math.log(end)
        for share in (0.5, 0.35, 0.65, 0.2, 0.8, 0.1, 0.9):
            x = math.exp(low + share * (high - low))
            before = self._axes.transData.transform((x, x * slope))
            after = self._axes.transData.transform((2 * x, 2 * x * slope))
            angle = math.degrees(math.atan2(after[1] - before[1], after[0] - before[0]))
            text = self._axes.annotate(
                words, (x, x * slope), xytext=(-4, 4), textcoords="offset points", fontsize=7,
                color=_GREY, rotation=angle, rotation_mode="anchor", ha="center", va="bottom",
                bbox=_PAPER,
            )  # fmt: skip
            if self._keep(text, boxes=self._slanted(text, angle)):
                return

    def around(self, words: str, place: tuple[float, float], colour: str) -> None:
        """Beside a point, joined to it by a thin line where it stands further away."""
        for right, up in _OFFSETS_PT:
            text = self._axes.annotate(
                words, place, xytext=(right, up), textcoords="offset points", fontsize=8,
                color="black", ha="left" if right >= 0 else "right", va="center", zorder=4,
                bbox=_PAPER,
                arrowprops={"arrowstyle": "-", "color": colour, "linewidth": 0.6, "shrinkB": 3},
            )  # fmt: skip
            if self._keep(text):
                return

    def _keep(self, text: Annotation, boxes: Sequence[Bbox] | None = None) -> bool:
        """Whether there is room for the text; it is removed where there is none."""
        wanted = boxes or [self._extent(text)]
        inside = self._axes.bbox
        fits = all(
            inside.x0 <= box.x0 and box.x1 <= inside.x1 and inside.y0 <= box.y0
            and box.y1 <= inside.y1
            for box in wanted
        )  # fmt: skip
        if not fits or any(box.overlaps(other) for box in wanted for other in self._taken):
            text.remove()
            return False
        self._taken += wanted
        return True

    def _extent(self, text: Annotation) -> Bbox:
        """Of the words alone, without the line that joins them to their point."""
        renderer = self._canvas.get_renderer()  # type: ignore[no-untyped-call]
        text.update_positions(renderer)
        return Text.get_window_extent(text, renderer)

    def _slanted(self, text: Annotation, angle: float) -> list[Bbox]:
        """Small boxes along a slanted text, since one around all of it would be mostly empty."""
        whole = self._extent(text)
        count = 12
        slope = math.copysign(1, math.sin(math.radians(angle)))
        boxes = []
        for index in range(count):
            x = whole.x0 + (index + 0.5) * whole.width / count
            share = (index + 0.5) / count
            y = whole.y0 + (share if slope > 0 else 1 - share) * whole.height
            boxes.append(Bbox.from_extents(x - 5, y - 6, x + 5, y + 6))
        return boxes
