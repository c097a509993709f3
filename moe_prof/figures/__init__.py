"""Pictures of sessions, for reports and notebooks: each a function from tidy rows to a figure.

``speedups(session.rows)`` and the others return a matplotlib ``Figure`` that belongs to no window,
so that it can be shown in a notebook, saved, or put into a page by :func:`moe_prof.figures.svg`.
A function returns None where the rows hold nothing for it to show.
"""

from moe_prof.figures.accuracy import scale_errors
from moe_prof.figures.counts import counters
from moe_prof.figures.shares import phases, threads
from moe_prof.figures.slots import slots
from moe_prof.figures.speedups import speedups
from moe_prof.figures.svg import svg
from moe_prof.figures.timeline import timeline

__all__ = ["counters", "phases", "scale_errors", "slots", "speedups", "svg", "threads", "timeline"]
