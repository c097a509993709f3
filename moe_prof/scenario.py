"""Scenarios: the shape of one forward pass, and how much work and data it is.

Source of the formulas: the counts of the layer itself (router, gate, up, down) and the comparison
of memory traffic before and after grouping tokens by expert.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from moe_prof.errors import UsageError

MAX_DIMENSION = 1 << 20
MAX_TOKENS = 1 << 24

_SIZE = re.compile(r"-?[0-9]{1,100}")
"""Plain digits only: ``int`` would also take 1_000, other scripts' digits and blank space."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """One workload: num_tokens (N), d_model (D), d_ff (H), num_experts (E), top_k (K).

    Raises:
        UsageError: a size is not an integer in range, or K > E.
    """

    num_tokens: int
    d_model: int
    d_ff: int
    num_experts: int
    top_k: int
    name: str = ""

    def __post_init__(self) -> None:
        limits = (
            ("N (num_tokens)", self.num_tokens, 0, MAX_TOKENS),
            ("D (d_model)", self.d_model, 1, MAX_DIMENSION),
            ("H (d_ff)", self.d_ff, 1, MAX_DIMENSION),
            ("E (num_experts)", self.num_experts, 1, MAX_DIMENSION),
            ("K (top_k)", self.top_k, 1, MAX_DIMENSION),
        )
        for label, value, low, high in limits:
            if isinstance(value, bool) or not isinstance(value, int):
                raise UsageError(f"scenario: {label} must be an integer, got {value!r}")
            if not low <= value <= high:
                raise UsageError(f"scenario: {label} = {value} is not in {low}..{high}")
        if self.top_k > self.num_experts:
            raise UsageError(
                f"scenario: K = {self.top_k} is larger than E = {self.num_experts}; "
                "a token cannot choose more experts than there are"
            )

    @property
    def label(self) -> str:
        """The preset's name, or ``N,D,H,E,K``."""
        return self.name or self.shape_text

    @property
    def shape_text(self) -> str:
        """``N,D,H,E,K`` as digits."""
        n, d, h, e, k = self.shape
        return f"{n},{d},{h},{e},{k}"

    @property
    def shape(self) -> tuple[int, int, int, int, int]:
        """(N, D, H, E, K)."""
        return (self.num_tokens, self.d_model, self.d_ff, self.num_experts, self.top_k)


SCENARIOS: dict[str, Scenario] = {
    s.name: s
    for s in (
        Scenario(1, 256, 128, 16, 4, "S1"),
        Scenario(1, 1024, 512, 16, 4, "S2"),
        Scenario(128, 256, 128, 16, 4, "S3"),
        Scenario(1024, 512, 128, 512, 2, "S4"),
    )
}


def parse(text: str) -> Scenario:
    """Turn ``S3`` or ``128,256,128,16,4`` into a Scenario.

    Raises:
        UsageError: the name is unknown or the sizes are malformed.
    """
    for name, scenario in SCENARIOS.items():
        if text.strip().lower() == name.lower():
            return scenario
    parts = text.replace(" ", "").split(",")
    if len(parts) == 1:
        known = ", ".join(SCENARIOS)
        raise UsageError(f"unknown scenario {text[:80]!r}; use one of {known}, or sizes N,D,H,E,K")
    if len(parts) != 5:
        raise UsageError(
            f"scenario {text[:80]!r} has {len(parts)} sizes; five are needed: N,D,H,E,K"
        )
    for part in parts:
        if not _SIZE.fullmatch(part):
            raise UsageError(
                f"scenario {text[:80]!r}: every size must be a whole number, got {part[:20]!r}"
            )
    n, d, h, e, k = (int(part) for part in parts)
    return Scenario(n, d, h, e, k)
