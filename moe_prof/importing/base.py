"""What every importer shares: a part of a file, the labels of its rows, what was found in it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from moe_prof.rows import Provenance, Row, Scope, Status

_ESCAPES = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()][A-Z0-9])")


@dataclass(frozen=True, slots=True)
class Labels:
    """What the user says about an imported file; see :class:`moe_prof.rows.Row`."""

    scenario: str = ""
    variant: str = ""


@dataclass(frozen=True, slots=True)
class Part:
    """The lines of one tool in a file; lines of others are empty, so that numbers stay true."""

    lines: tuple[str, ...]

    @property
    def text(self) -> str:
        """All lines as one text."""
        return "\n".join(self.lines)

    @property
    def filled(self) -> Iterator[tuple[int, str]]:
        """(line number from 1, line) of every line that is not blank."""
        return ((n, line) for n, line in enumerate(self.lines, 1) if line.strip())


@dataclass(frozen=True, slots=True)
class Found:
    """What one tool's part of a file says.

    Attributes:
        rows: tidy rows.
        remarks: one line per place that could not be read, beginning with ``line N:``, and what
            else a reader of the rows has to know.
        subject: what was measured, as the tool names it (a command line), or "".
    """

    rows: tuple[Row, ...]
    remarks: tuple[str, ...] = ()
    subject: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One kind of output: a row of the table of kinds.

    Attributes:
        name: the ``collector`` of its rows.
        title: what to call it.
        read: turns the tool's part of a file into rows; raises InputError.
        starts: whether a line begins such an output (or, if ``scattered``, belongs to it).
        scattered: its lines may stand anywhere between other output.
        whole: whether the text as a whole is such an output, whatever its lines look like.
        fits: whether a text without any title line is such an output.
        stream: reads line by line what is too large for memory.
    """

    name: str
    title: str
    read: Callable[[Part, Labels], Found]
    starts: Callable[[str], object] | None = None
    scattered: bool = False
    whole: Callable[[Part], bool] | None = None
    fits: Callable[[Part], bool] | None = None
    stream: Callable[[Iterable[str], Labels], Found] | None = None


@dataclass(frozen=True, slots=True)
class RowMaker:
    """Rows of one tool under the user's labels."""

    labels: Labels
    collector: str
    provenance: Provenance = "measured"

    def row(
        self,
        metric: str,
        value: float | None,
        unit: str,
        source: str,
        *,
        scope: Scope = "process",
        status: Status = "ok",
        missing: str = "the tool shows none",
        cpu: str | None = None,
        thread: str | None = None,
        phase: str | None = None,
        repeat: int | None = None,
        time_s: float | None = None,
        level: int | None = None,
        mux_pct: float | None = None,
        stddev: float | None = None,
        n: int | None = None,
    ) -> Row:
        """A row; a value that is None or no finite number is unavailable, ``missing`` says why."""
        number = float(value) if value is not None and math.isfinite(value) else None
        known = number is not None
        if not known and status == "ok":
            status = "not_counted" if value is None else "out_of_bounds"
        return Row(
            scenario=self.labels.scenario, variant=self.labels.variant, collector=self.collector,
            scope=scope, repeat=repeat, time_s=time_s, cpu=cpu, thread=thread, phase=phase,
            metric=metric or "?", level=level, value=number, unit=unit or "1",
            stddev=stddev, n=n, mux_pct=mux_pct, status=status,
            provenance=self.provenance if known else "unavailable",
            source=source if known else f"{source}; {missing}",
        )  # fmt: skip


def clean_line(line: str) -> str:
    """The line without colour codes, other commands to a terminal and its echo of Ctrl-C."""
    plain = _ESCAPES.sub("", line) if "\x1b" in line else line
    return f"  {plain[2:]}" if plain.startswith("^C") else plain
