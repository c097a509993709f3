"""Counts of one forward: arithmetic, bytes, intensity before and after grouping, headroom.

They follow from the shape alone (N tokens, D d_model, H d_ff, E routed experts, K per token, and
S = 1 with a shared expert beside them, else 0), so they hold for every variant; what a variant adds
is overhead.

Source of the formulas: the layer's definition (`kernels/oracle.py`). One multiply-accumulate (MAC)
counts as one. Expert weights are int8, the router is f32.
"""

from __future__ import annotations

from dataclasses import dataclass

from moe_prof.scenario import Scenario

MATRICES = 3
"""Weight matrices of one expert: gate, up, down."""
LARGEST_PRODUCT = 1 << 14
"""Largest size of a product of two int8 values: -128 times -128."""
F32_BYTES = 4


@dataclass(frozen=True, slots=True)
class Headroom:
    """How many products one accumulator holds, and how many one output needs.

    Attributes:
        accumulator_bits: width of the signed accumulator.
        terms: products summed into one output (D for gate and up, H for down).
        safe_terms: products of the largest size that fit for certain.
        margin: 2^(bits - 1) / (terms * 2^14); at 1 or below the worst case can overflow.
    """

    accumulator_bits: int
    terms: int
    safe_terms: int
    margin: float

    @property
    def is_safe(self) -> bool:
        """Whether no weights and activations can overflow the accumulator."""
        return self.terms <= self.safe_terms


@dataclass(frozen=True, slots=True)
class WorkCounts:
    """Work and traffic of one forward of a scenario.

    Attributes:
        router_macs: N * E * D, in f32.
        expert_macs: N * (K + S) * 3 * D * H, in int8.
        router_exps: N * E, one sigmoid (or one term of a softmax) for each score.
        activation_exps: N * (K + S) * H, one for each SiLU.
        router_bytes: 4 * E * D, the router's f32 weights read once.
        expert_bytes: 3 * D * H, the int8 weights of one expert.
        weight_reads: N * (K + S), how often an expert's weights are read token by token.
        weight_bytes_by_token: expert weights read token by token, weight_reads * expert_bytes.
        experts_most: distinct experts that can be needed, min(E, N * K) + S; 0 without tokens.
        experts_expected: the same under uniform random routing, E * (1 - (1 - K/E)^N) + S.
        weight_bytes_grouped: expert weights read once for each of experts_most.
        weight_bytes_grouped_expected: the same for experts_expected (a mean, not whole bytes).
        token_bytes: 8 * N * D, x read and y written in f32.
        row_bytes: N * (K + S) * (5 * D + 5 * H), rows between the steps of grouped products,
            written once: gathered int8 x and f32 output, f32 h and int8 h.
        intensity_by_token_macs_per_byte: expert_macs / weight_bytes_by_token; 1 at every shape.
        intensity_grouped_macs_per_byte: expert_macs / weight_bytes_grouped.
        intensity_grouped_expected_macs_per_byte: expert_macs / weight_bytes_grouped_expected.
            The intensities are None without tokens.
    """

    router_macs: int
    expert_macs: int
    router_exps: int
    activation_exps: int
    router_bytes: int
    expert_bytes: int
    weight_reads: int
    weight_bytes_by_token: int
    experts_most: int
    experts_expected: float
    weight_bytes_grouped: int
    weight_bytes_grouped_expected: float
    token_bytes: int
    row_bytes: int
    intensity_by_token_macs_per_byte: float | None
    intensity_grouped_macs_per_byte: float | None
    intensity_grouped_expected_macs_per_byte: float | None

    @property
    def macs(self) -> int:
        """All useful multiply-accumulates of one forward."""
        return self.router_macs + self.expert_macs

    @property
    def macs_by_phase(self) -> dict[str, int]:
        """Useful multiply-accumulates of the phases that have any: gate and up are two of three."""
        down = self.expert_macs // MATRICES
        return {"router": self.router_macs, "gate_up": self.expert_macs - down, "down": down}

    @property
    def exps(self) -> int:
        """All exponentials of one forward."""
        return self.router_exps + self.activation_exps

    @property
    def router_share(self) -> float | None:
        """The router's share of all MACs, None without tokens."""
        return self.router_macs / self.macs if self.macs else None


def count_work(scenario: Scenario) -> WorkCounts:
    """Work and traffic of one forward of a scenario."""
    n, d, h, e, k = scenario.shape
    reads = n * scenario.experts_per_token
    expert_bytes = MATRICES * d * h
    expert_macs = reads * expert_bytes
    most = min(e, n * k) + scenario.options.has_shared if n else 0
    expected = expected_experts(scenario)
    return WorkCounts(
        router_macs=n * e * d,
        expert_macs=expert_macs,
        router_exps=n * e,
        activation_exps=reads * h,
        router_bytes=F32_BYTES * e * d,
        expert_bytes=expert_bytes,
        weight_reads=reads,
        weight_bytes_by_token=reads * expert_bytes,
        experts_most=most,
        experts_expected=expected,
        weight_bytes_grouped=most * expert_bytes,
        weight_bytes_grouped_expected=expected * expert_bytes,
        token_bytes=2 * F32_BYTES * n * d,
        row_bytes=reads * (F32_BYTES + 1) * (d + h),
        intensity_by_token_macs_per_byte=_ratio(expert_macs, reads * expert_bytes),
        intensity_grouped_macs_per_byte=_ratio(expert_macs, most * expert_bytes),
        intensity_grouped_expected_macs_per_byte=_ratio(expert_macs, expected * expert_bytes),
    )


def expected_experts(scenario: Scenario) -> float:
    """Mean number of distinct experts needed, the shared one included; 0 without tokens.

    Under uniform random routing a token leaves a given expert out with probability 1 - K/E, and N
    tokens do so independently. Real routing is less even and needs fewer.
    """
    n, _, _, e, k = scenario.shape
    if n == 0:
        return 0.0
    return float(e * (1.0 - (1.0 - k / e) ** n) + scenario.options.has_shared)


def headroom(terms: int, accumulator_bits: int) -> Headroom:
    """Headroom of a signed accumulator for a dot product of ``terms`` int8 products."""
    largest = (1 << (accumulator_bits - 1)) - 1
    return Headroom(
        accumulator_bits=accumulator_bits,
        terms=terms,
        safe_terms=largest // LARGEST_PRODUCT,
        margin=(largest + 1) / (terms * LARGEST_PRODUCT),
    )


def headrooms(scenario: Scenario) -> dict[tuple[str, int], Headroom]:
    """Headroom by (dimension, accumulator bits): D and H, each in int16 and int32."""
    _, d, h, _, _ = scenario.shape
    return {
        (name, bits): headroom(terms, bits)
        for name, terms in (("d_model", d), ("d_ff", h))
        for bits in (16, 32)
    }


def _ratio(amount: float, per: float) -> float | None:
    return amount / per if per else None
