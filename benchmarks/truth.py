"""What the layer should give: the exact W8A8 oracle, and the layer without quantized activations.

The oracle quantizes activations to int8, one scale a token; its distance from the second tells
what that quantization costs, and the distance of a peer, which quantizes in its own way, what the
peer's costs. All in float64.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from moe_prof.analysis.work import count_work
from moe_prof.kernels import Weights, random_tokens, random_weights, reference
from moe_prof.kernels.oracle import routing
from moe_prof.kernels.weights import F32
from moe_prof.measure.expected import chosen_rows
from moe_prof.scenario import Scenario

F64 = npt.NDArray[np.float64]


def save(scenario: Scenario, seed: int, path: Path) -> int:
    """Write ``rows`` (R,), ``oracle`` and ``unquantized`` (R, D) f64 to ``path`` (.npz).

    Returns:
        Experts that the scenario's tokens touch, the shared one included.
    """
    weights, x = random_weights(scenario, seed), random_tokens(scenario, seed)
    rows = chosen_rows(len(x), count_work(scenario).macs, None)
    chosen = np.ascontiguousarray(x[rows])
    np.savez(
        path, rows=rows, oracle=reference(weights, chosen), unquantized=unquantized(weights, chosen)
    )
    return len(np.unique(routing(weights, x).ids)) + int(weights.has_shared)


def unquantized(w: Weights, x: F32) -> F64:
    """The layer's output (N, D) f64 with dequantized weights and x (N, D) f32 as it is."""
    ids, gates, _ = routing(w, x)
    exact = x.astype(np.float64)
    y = exact.copy() if w.has_residual else np.zeros(x.shape)
    if w.has_shared:
        y += _expert(w, w.num_experts, exact)
    for expert in np.unique(ids):
        rows, slots = np.nonzero(ids == expert)
        y[rows] += gates[rows, slots, None] * _expert(w, int(expert), exact[rows])
    return y


def _expert(w: Weights, expert: int, x: F64) -> F64:
    gate = (x @ w.gate[expert].T.astype(np.float64)) * w.gate_scale[expert]
    up = (x @ w.up[expert].T.astype(np.float64)) * w.up_scale[expert]
    with np.errstate(over="ignore"):
        h = gate / (1.0 + np.exp(-gate)) * up
    out: F64 = (h @ w.down[expert].T.astype(np.float64)) * w.down_scale[expert]
    return out
