"""Spans of a run as trace files for Perfetto and chrome://tracing: one a rank, and one of all.

Source: the Trace Event Format (complete events ``X`` with ``ts`` and ``dur`` in microseconds, names
of processes and threads as metadata events ``M``). A rank is a process of the trace, a thread of
the rank one of its threads. Times are CLOCK_MONOTONIC, one clock for all processes of a machine;
ranks on different machines have clocks of their own, which are not aligned here.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from moe_prof.errors import MoeProfError

MOST_SPANS = 200_000
"""Of one file: about 30 MB, what viewers still open at once."""


@dataclass(frozen=True, slots=True)
class Span:
    """One stretch of one thread.

    Attributes:
        name: the stage.
        call: variant and number of the call.
        expert: local expert, L for the shared one, -1 for none.
        peer: the rank waited for, -1 for none.
    """

    rank: int
    thread: int
    name: str
    call: str
    begin_ns: int
    end_ns: int
    expert: int = -1
    peer: int = -1


def document(spans: Iterable[Span], start_ns: int = 0) -> dict[str, Any]:
    """The trace as JSON types; times count from ``start_ns``."""
    events: list[dict[str, Any]] = []
    threads: dict[tuple[int, int], None] = {}
    for span in spans:
        threads[span.rank, span.thread] = None
        what: dict[str, Any] = {"call": span.call}
        if span.expert >= 0:
            what["expert"] = span.expert
        if span.peer >= 0:
            what["waits for rank"] = span.peer
        events.append(
            {
                "ph": "X", "name": span.name, "cat": _category(span.name), "pid": span.rank,
                "tid": span.thread, "ts": (span.begin_ns - start_ns) / 1000,
                "dur": (span.end_ns - span.begin_ns) / 1000, "args": what,
            }
        )  # fmt: skip
    ranks = dict.fromkeys(rank for rank, _ in threads)
    names = [_name("process_name", rank, 0, f"rank {rank}") for rank in ranks]
    names += [_name("thread_name", rank, thread, f"thread {thread}") for rank, thread in threads]
    return {"displayTimeUnit": "ns", "traceEvents": [*names, *events]}


def write(folder: Path, stem: str, spans: Sequence[Span], ranks: int) -> list[Path]:
    """``STEM-rankR.json`` for every rank, and ``STEM-all.json``; returns the paths.

    Raises:
        MoeProfError: the folder cannot be written.
    """
    start_ns = min((span.begin_ns for span in spans), default=0)
    parts = [(f"{stem}-rank{r}.json", [s for s in spans if s.rank == r]) for r in range(ranks)]
    parts.append((f"{stem}-all.json", list(spans)))
    paths = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, own in parts:
            path = folder / name
            text = json.dumps(document(own[:MOST_SPANS], start_ns))
            path.write_text(text, encoding="utf-8")
            paths.append(path)
    except OSError as error:
        raise MoeProfError(
            f"cannot write the trace in {folder}: {error.strerror}; name a writable folder with "
            "--trace"
        ) from error
    return paths


def _category(stage: str) -> str:
    if stage.startswith("wait"):
        return "wait"
    return "communication" if stage in ("dispatch", "send", "combine") else "compute"


def _name(kind: str, rank: int, thread: int, text: str) -> dict[str, Any]:
    return {"ph": "M", "name": kind, "pid": rank, "tid": thread, "args": {"name": text}}
