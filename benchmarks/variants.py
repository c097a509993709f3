"""Our variants as contenders; timed by the native loop, as everywhere in the toolkit."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.contender import F32, Contender, Entry
from moe_prof import kernels
from moe_prof.errors import UsageError
from moe_prof.kernels.table import BY_NAME
from moe_prof.kernels.weights import Weights


class OurVariant(Contender):
    """A variant of the table on its best path here, or on the one asked for."""

    def __init__(self, variant: str, isa: str | None = None) -> None:
        self._variant, self._isa = variant, isa

    def availability(self) -> str:
        """Whether a path of it runs on this CPU."""
        if kernels.isas(self._variant):
            return ""
        return f"no path of {self._variant} runs on this CPU"

    def prepare(self, weights: Weights, threads: int, max_tokens: int) -> None:
        """Prepare the plan."""
        self._plan = kernels.variant(self._variant).prepare(
            weights, threads, isa=self._isa, max_tokens=max_tokens
        )
        self.path = self._plan.info.isa

    def forward(self, x: F32) -> F32:
        """One forward."""
        return self._plan.forward(x)

    def time_forward(self, x: F32, loops: int) -> float:
        """Seconds by the plan's own loop."""
        return float(self._plan.time_forward(x, loops)[0])

    def close(self) -> None:
        """Close the plan."""
        self._plan.close()


def entries(names: Sequence[str], teams: Sequence[int]) -> list[Entry]:
    """The variants in teams of each size; those that never use threads run alone only.

    Raises:
        UsageError: a variant is unknown.
    """
    found = []
    for name in names:
        if name not in BY_NAME:
            raise UsageError(f"unknown variant {name!r}; known: {', '.join(BY_NAME)}")
        found += [
            Entry(name, "benchmarks.variants:OurVariant", threads, {"variant": name})
            for threads in teams
            if BY_NAME[name].threads or threads == 1
        ]
    return found


def names_of(text: str) -> tuple[str, ...]:
    """``all`` or names separated by commas; only variants that can run here are in ``all``."""
    return kernels.variants() if text == "all" else tuple(text.split(","))
