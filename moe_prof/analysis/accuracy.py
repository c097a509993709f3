"""What quantization costs: one activation scale a token against one for all; accumulators. Pure.

The layer is computed in float64 with the int8 weights taken as they are, once with float
activations and once with activations rounded to int8, either with a scale of their own for every
token or with one scale for all x and one for all h of the batch. The difference is what the scheme
costs. The residual, exact in all of them, is left out, since it would hide errors. Experts are
chosen in float from the same tokens, so that all schemes use the same ones.

A batch has 128 tokens and at most 16 experts, whatever the scenario: neither number changes what
one product costs. Four batches are compared: tokens brought to one size, tokens as they are drawn
(a quarter to four times a common size), and these with one token 2 and 10 times the largest.

Source: the layer's definition (``kernels/oracle.py``); the worst case of an accumulator from
``analysis/work.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from moe_prof.analysis.work import Headroom, headrooms
from moe_prof.kernels.inputs import random_tokens, random_weights
from moe_prof.kernels.oracle import SMALLEST_MAGNITUDE, quantize_tokens, routing
from moe_prof.kernels.weights import F32, I8, Weights
from moe_prof.rows import Row
from moe_prof.scenario import Scenario
from moe_prof.units import plural_text

F64 = npt.NDArray[np.float64]
Scheme = Literal["per_token", "shared"]
Sum = Literal["d_model", "d_ff"]

COLLECTOR = "accuracy"
TOKENS = 128
MOST_EXPERTS = 16
SCHEMES: tuple[Scheme, ...] = get_args(Scheme)
MARGIN, MET_SHARE = "accumulator_margin", "accumulator_met_share"
"""Metrics: capacity over the worst case; the largest running sum met over capacity."""
ERROR_METRICS = ("rel_rmse_scales", "median_token_scales", "worst_token_scales")
MOST_TERMS = 1 << 25
"""Products whose running sums are looked at, for time and memory; further rows are left out."""


def _even(x: F32) -> F32:
    """Every token brought to the mean size of all."""
    largest = np.abs(x).max(axis=1, keepdims=True)
    even: F32 = x * (largest.mean() / np.where(largest > 0, largest, 1.0)).astype(np.float32)
    return even


def _with_outlier(factor: float) -> Callable[[F32], F32]:
    """The middle token brought to ``factor`` times the largest value of the batch."""

    def made(x: F32) -> F32:
        middle = len(x) // 2
        own = np.abs(x[middle]).max(initial=0.0)
        changed: F32 = x.copy()
        changed[middle] *= np.float32(factor * np.abs(x).max(initial=0.0) / own if own else 1.0)
        return changed

    return made


CASES: Mapping[str, Callable[[F32], F32]] = {
    "tokens of one size": _even,
    "as drawn": lambda x: x,
    "one token 2x": _with_outlier(2.0),
    "one token 10x": _with_outlier(10.0),
}
"""Batches, by what is done to the tokens."""


@dataclass(frozen=True, slots=True)
class ScaleError:
    """How far quantized activations take the layer's output from the float layer's.

    Attributes:
        case: which batch, a key of ``CASES``.
        rel_rmse: over all values of all tokens.
        median_token: median over tokens of each token's relative error.
        worst_token: the largest of these.
    """

    scheme: Scheme
    case: str
    rel_rmse: float
    median_token: float
    worst_token: float


@dataclass(frozen=True, slots=True)
class Accumulation:
    """An accumulator's worst case, and the largest running sum that was met.

    Attributes:
        length: ``d_model`` (gate, up) or ``d_ff`` (down).
        bound: worst case over all weights and activations.
        largest: largest size of any running sum in the batch.
    """

    length: Sum
    bound: Headroom
    largest: int

    @property
    def met_share(self) -> float:
        """The largest running sum over what the accumulator holds; above 1 it overflowed."""
        return self.largest / float((1 << (self.bound.accumulator_bits - 1)) - 1)


def study_scenario(scenario: Scenario) -> Scenario:
    """The batch that is studied: the scenario's lengths, 128 tokens, not too many experts."""
    _, d, h, e, k = scenario.shape
    return Scenario(TOKENS, d, h, min(e, MOST_EXPERTS), min(k, MOST_EXPERTS))


def scale_errors(w: Weights, x: F32) -> list[ScaleError]:
    """Errors by case and scheme for tokens x: (N, D) f32.

    Raises:
        InputError: x is not (N, D) f32 and finite.
    """
    found = []
    for case, made in CASES.items():
        tokens = made(x)
        exact = _layer(w, tokens, lambda values: values)
        for scheme in SCHEMES:
            found.append(_compare(scheme, case, quantized_layer(w, tokens, scheme), exact))
    return found


def quantized_layer(w: Weights, x: F32, scheme: Scheme) -> F64:
    """The layer's output without residual, (N, D) f64, with activations of a scheme.

    Raises:
        InputError: x is not (N, D) f32 and finite.
    """
    return _layer(w, x, _per_token if scheme == "per_token" else _shared)


def accumulations(w: Weights, x: F32) -> list[Accumulation]:
    """Worst case and largest running sum of int16 and int32 accumulators of the shared expert.

    Args:
        x: (N, D) f32; as many rows as ``MOST_TERMS`` allows are used.

    Raises:
        InputError: x is not (N, D) f32 and finite.
    """
    scenario = Scenario(len(x), w.d_model, w.gate.shape[1], w.num_experts, w.top_k)
    x = x[: max(1, MOST_TERMS // (w.d_model * w.gate.shape[1]))]
    x_q, x_scale = quantize_tokens(x)
    h = _swiglu(w, -1, x_q.astype(np.float64) * x_scale[:, None])
    h_q, _ = quantize_tokens(h.astype(np.float32))
    largest: dict[str, int] = {
        "d_model": max(_largest_sum(x_q, w.gate[-1]), _largest_sum(x_q, w.up[-1])),
        "d_ff": _largest_sum(h_q, w.down[-1]),
    }
    return [
        Accumulation(length, bound, largest[length])
        for (name, _), bound in headrooms(scenario).items()
        for length in get_args(Sum)
        if name == length
    ]


def study(scenario: Scenario, seed: int = 0) -> list[Row]:
    """Both questions for a scenario's lengths, as tidy rows.

    Raises:
        UsageError: the weights need more memory than there is.
    """
    batch = study_scenario(scenario)
    w, x = random_weights(batch, seed), random_tokens(batch, seed)
    labels = {"scenario": scenario.label, "collector": COLLECTOR}
    what = ", ".join(
        (plural_text(batch.num_tokens, "token"), plural_text(batch.num_experts, "expert"),
         f"seed {seed}")
    )  # fmt: skip
    rows = [row for error in scale_errors(w, x) for row in _error_rows(error, what, labels)]
    return rows + [row for one in accumulations(w, x) for row in _sum_rows(one, labels)]


def errors_from(rows: Iterable[Row]) -> list[ScaleError]:
    """The errors again, from the rows of :func:`study`."""
    found: dict[tuple[str, str], dict[str, float]] = {}
    for row in rows:
        scheme, _, case = row.source.partition(";")[0].partition(": ")
        if row.collector == COLLECTOR and case in CASES and row.value is not None:
            found.setdefault((scheme, case), {})[row.metric] = row.value
    return [
        ScaleError(scheme, case, *(values[metric] for metric in ERROR_METRICS))
        for (name, case), values in found.items()
        for scheme in SCHEMES
        if scheme == name and len(values) == len(ERROR_METRICS)
    ]


def accumulator_name(bits: int, terms: int, length: str) -> str:
    """How a row of :func:`study` calls an accumulator, before the colon of its source."""
    return f"int{bits}, {terms} terms ({length})"


def _layer(w: Weights, x: F32, quantized: Callable[[F64], F64]) -> F64:
    """The sum of all experts' outputs, (N, D) f64, without residual."""
    ids, gates, _ = routing(w, x)
    rounded = quantized(x.astype(np.float64))
    pairs = [(e, *np.nonzero(ids == e), None) for e in np.unique(ids)]
    hidden: list[tuple[int, Any, F64, F64]] = [
        (int(e), rows, gates[rows, slots], _swiglu(w, int(e), rounded[rows]))
        for e, rows, slots, _ in pairs
    ]
    if w.has_shared:
        every = np.arange(len(x))
        hidden.append((w.num_experts, every, np.ones(len(x)), _swiglu(w, w.num_experts, rounded)))
    all_h = quantized(np.concatenate([h for *_, h in hidden]))
    y = np.zeros(x.shape)
    at = 0
    for expert, rows, gate, h in hidden:
        part = all_h[at : at + len(h)]
        at += len(h)
        y[rows] += gate[:, None] * (
            (part @ w.down[expert].T.astype(np.float64)) * w.down_scale[expert]
        )
    return y


def _swiglu(w: Weights, expert: int, x: F64) -> F64:
    """h: (rows, H) f64 of one expert, for activations x: (rows, D) f64."""
    gate = (x @ w.gate[expert].T.astype(np.float64)) * w.gate_scale[expert]
    up = (x @ w.up[expert].T.astype(np.float64)) * w.up_scale[expert]
    with np.errstate(over="ignore"):
        h: F64 = gate / (1.0 + np.exp(-gate)) * up
    return h


def _per_token(values: F64) -> F64:
    """Rounded to 127 steps of each row's own largest value."""
    return _rounded(values, np.abs(values).max(axis=1, keepdims=True))


def _shared(values: F64) -> F64:
    """Rounded to 127 steps of the largest value of all rows."""
    return _rounded(values, np.full((len(values), 1), np.abs(values).max(initial=0.0)))


def _rounded(values: F64, largest: F64) -> F64:
    step = np.where(largest >= SMALLEST_MAGNITUDE, largest, 1.0) / 127.0
    rounded: F64 = np.rint(values / step) * step * (largest >= SMALLEST_MAGNITUDE)
    return rounded


def _compare(scheme: Scheme, case: str, actual: F64, exact: F64) -> ScaleError:
    distance = np.linalg.norm(actual - exact, axis=1)
    size = np.linalg.norm(exact, axis=1)
    by_token = distance / np.where(size > 0, size, 1.0)
    whole = float(np.linalg.norm(size)) or 1.0
    return ScaleError(
        scheme, case, float(np.linalg.norm(distance)) / whole, float(np.median(by_token)),
        float(by_token.max()),
    )  # fmt: skip


def _largest_sum(rows: I8, matrix: I8) -> int:
    """Largest size of a running sum of int8 products, (rows, terms) by (out, terms)."""
    weights = matrix.astype(np.int64)
    return max(
        (int(np.abs(np.cumsum(weights * row.astype(np.int64), axis=1)).max()) for row in rows),
        default=0,
    )


def _error_rows(error: ScaleError, what: str, labels: dict[str, str]) -> list[Row]:
    source = f"{error.scheme}: {error.case}; {what}"
    values = (error.rel_rmse, error.median_token, error.worst_token)
    return [
        Row(metric=metric, value=value, unit="1", source=source, **labels)  # type: ignore[arg-type]
        for metric, value in zip(ERROR_METRICS, values, strict=True)
    ]


def _sum_rows(one: Accumulation, labels: dict[str, str]) -> list[Row]:
    bits = one.bound.accumulator_bits
    made: list[Row] = []
    for metric, value, provenance, source in (
        (MARGIN, one.bound.margin, "modelled", "capacity / worst case of all sums"),
        (MET_SHARE, one.met_share, "measured", "largest running sum / capacity"),
    ):
        text = f"{accumulator_name(bits, one.bound.terms, one.length)}: {source}"
        row = Row(metric=metric, value=value, unit="1", source=text, **labels)  # type: ignore[arg-type]
        made.append(replace(row, provenance=provenance))  # type: ignore[arg-type]
    return made
