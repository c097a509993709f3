"""Scenarios: the shape of one forward pass, and how much work and data it is.

Source of the formulas: the counts of the layer itself (router, gate, up, down) and the comparison
of memory traffic before and after grouping tokens by expert.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from moe_prof.errors import UsageError
from moe_prof.presets import PLAIN, PRESETS, LayerOptions, Preset

MAX_DIMENSION = 1 << 20
MAX_TOKENS = 1 << 24

_SIZE = re.compile(r"-?[0-9]{1,100}")
"""Plain digits only: ``int`` would also take 1_000, other scripts' digits and blank space."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Where a layer's weights are read from instead of being seeded.

    Attributes:
        path: a .safetensors file, or a folder of them.
        layer: the layer's number in the names.
        pattern: of the experts' names, "" for the known ones.
    """

    path: str
    layer: int
    pattern: str = ""


@dataclass(frozen=True, slots=True)
class Scenario:
    """One workload: num_tokens (N), d_model (D), d_ff (H), num_experts (E), top_k (K).

    Attributes:
        name: the label, "" for plain sizes.
        options: what the layer does beside its sizes.
        distinct_experts: how many experts' weight matrices there are; expert e has those of expert
            e mod that number, in the same memory. 0: every expert has its own.

    Raises:
        UsageError: a size is not an integer in range, or K > E.
    """

    num_tokens: int
    d_model: int
    d_ff: int
    num_experts: int
    top_k: int
    name: str = ""
    options: LayerOptions = PLAIN
    distinct_experts: int = 0
    checkpoint: Checkpoint | None = None

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
    def stored_experts(self) -> int:
        """E, and one more where there is a shared expert."""
        return self.num_experts + self.options.has_shared

    @property
    def experts_per_token(self) -> int:
        """K, and one more where there is a shared expert."""
        return self.top_k + self.options.has_shared

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


def of_preset(preset: Preset, num_tokens: int = 1) -> Scenario:
    """A model's layer with that many tokens; more than one stand in its label: ``NAME@N``."""
    name = preset.name if num_tokens == 1 else f"{preset.name}@{num_tokens}"
    sizes = (preset.d_model, preset.d_ff, preset.num_experts, preset.top_k)
    return Scenario(num_tokens, *sizes, name=name, options=preset.options)


def parse(text: str) -> Scenario:
    """Turn ``S3``, ``deepseek-v3``, ``deepseek-v3@32`` or ``128,256,128,16,4`` into a Scenario.

    Raises:
        UsageError: the name is unknown or the sizes are malformed.
    """
    word = text.strip().lower()
    for name, scenario in SCENARIOS.items():
        if word == name.lower():
            return scenario
    name, at, tokens = word.partition("@")
    if name in PRESETS:
        return of_preset(PRESETS[name], _tokens(text, tokens) if at else 1)
    parts = text.replace(" ", "").split(",")
    if len(parts) == 1:
        known = ", ".join((*SCENARIOS, *PRESETS))
        raise UsageError(
            f"unknown scenario {text[:80]!r}; use one of {known} (a model with @N for N tokens), "
            "or sizes N,D,H,E,K"
        )
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


def _tokens(text: str, digits: str) -> int:
    if not _SIZE.fullmatch(digits):
        raise UsageError(
            f"scenario {text[:80]!r}: after @ the number of tokens is needed, got {digits[:20]!r}"
        )
    return int(digits)
