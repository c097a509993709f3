"""What the generators of outputs share: what is expected, names, numbers in locales."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

EVENTS = ("cycles", "instructions", "branches", "branch-misses", "page-faults", "LLC-loads",
          "cpu_core/cycles/", "r1c2", "uops_issued.any:u")  # fmt: skip
FUNCTIONS = (
    "gemm", "moe::gemm<signed char, 16, 64>(int, char)", "operator()", "std::map<int, long>::at",
    "route [clone .constprop.0]", "__expf_fma", "(anonymous namespace)::run", "f(void (*)(int))",
)  # fmt: skip


@dataclass(frozen=True)
class Expected:
    """A row that must be there; ``where`` is part of its source, cpu or thread."""

    metric: str
    value: float | None
    where: str = ""


@dataclass(frozen=True)
class Output:
    """A text and what must be read from it."""

    text: str
    expected: tuple[Expected, ...]


@dataclass(frozen=True)
class Locale:
    """How a locale writes numbers."""

    group: str
    decimal: str
    lakh: bool = False

    def count(self, value: int) -> str:
        """A grouped whole number."""
        digits = str(value)
        if self.lakh and len(digits) > 3:
            head, tail = digits[:-3], digits[-3:]
            parts = [head[max(0, end - 2) : end] for end in range(len(head), 0, -2)][::-1]
            return self.group.join([*parts, tail])
        parts = [digits[max(0, end - 3) : end] for end in range(len(digits), 0, -3)][::-1]
        return self.group.join(parts)

    def fixed(self, value: float, places: int) -> str:
        """A number that is never grouped."""
        return f"{value:.{places}f}".replace(".", self.decimal)


LOCALES = (
    Locale("", "."), Locale(",", "."), Locale(".", ","), Locale("'", "."), Locale("\u2019", "."),
    Locale("\u202f", ","), Locale("\u00a0", ","), Locale(" ", ","), Locale(",", ".", lakh=True),
)  # fmt: skip
counts = st.integers(0, 10**13)
percents = st.integers(0, 10_000).map(lambda n: n / 100)
running = st.sampled_from([100.0, 83.33, 66.67, 12.5, 3.1])
names = st.lists(st.sampled_from(FUNCTIONS), min_size=1, max_size=5, unique=True)
