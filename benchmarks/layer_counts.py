"""Cycles of one core for a whole layer of the AMX path, by phase: tile work beside conversions.

Conversions are counted from the loops of the kernels as compiled (compiled_loops.py), on a core
with two 512-bit units as Sapphire Rapids has. Tile work follows from the blocking: per 64 k and two
tiles of weights products of one cycle per row, loads of two lines a cycle from L1, 32 lines of
weights from L2 at 48 bytes a cycle, whichever takes longest. Experts get equal numbers of rows, in
blocks of 32. The router of large layers multiplies int16 by four tiles' products and bounds every
score; the few experts that it leaves open are left out, as are loads of what lies beyond L2, the
waiting of a team, and what overlaps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.table import Table

from benchmarks.compiled_loops import L2_BYTES_PER_CYCLE, compiled, demand_of, loop_with_most
from moe_prof.errors import UnavailableError
from moe_prof.kernels.build import SOURCE_DIR
from moe_prof.scenario import Scenario

FLAGS = ("-march=x86-64-v4", "-mavx512vnni", "-mamx-tile", "-mamx-int8")
NOTES = (
    "Thousands of cycles of one core with two 512-bit units, by counts: no measurement. L1, L2: "
    "tile work with all weights there. What lies further away, and what overlaps, is left out.",
    "of peak: multiply-adds of the layer over 1024 a cycle, weights in L2.",
)

_FOLDER = SOURCE_DIR / "cpp" / "packed" / "avx512_vnni"
_BLOCK_ROWS, _TILE_ROWS, _LEAST_TILE_ROWS = 32, 16, 3
_CHAIN_CYCLES, _LINES_PER_CYCLE, _LINE = 52, 2, 64
_PEAK = 1024

_KERNELS = {  # phase: kernel, what its loop must hold, values per such instruction
    "absmax": ("f32_absmax", "vmaxps", 16),
    "quantize": ("f32_qu8_quantize", "vpmovdb", 16),
    "swiglu": ("s32_swiglu_32", "vdivps", 16),
    "dequantize": ("s32_f32_dequantize", "vcvtdq2ps", 16),
    "combine": ("f32_combine", "vaddps", 16),
    "router": ("f32_router_12x16", "vfmadd231ps", 16),
    "bounds": ("s32_score_bounds", "vdivps", 16),
}


@dataclass(frozen=True, slots=True)
class Cost:
    """Cycles per value of a conversion, and what binds its loop."""

    cycles: float
    bound: str


@dataclass(frozen=True, slots=True)
class LayerCycles:
    """Cycles of one core for a layer.

    Attributes:
        macs: int8 multiply-adds of its experts.
        tiles_l1 / tiles_l2: products with all weights in L1, in L2.
        phases: of everything else, by phase.
    """

    macs: int
    tiles_l1: float
    tiles_l2: float
    phases: dict[str, float]

    @property
    def conversions(self) -> float:
        """Everything that is no int8 product."""
        return sum(self.phases.values())

    @property
    def total(self) -> float:
        """With the weights in L2."""
        return self.tiles_l2 + self.conversions


def costs(folder: Path) -> dict[str, Cost]:
    """By phase, from the kernels as compiled.

    Raises:
        UnavailableError: the compiler or objdump is missing, or a loop is not found.
    """
    found = {}
    for phase, (kernel, mnemonic, values) in _KERNELS.items():
        name = f"moe_{kernel}__avx512_vnni"
        source = next(_FOLDER.glob(f"{kernel}*.cpp"))
        loop = loop_with_most(name, compiled([source], FLAGS, folder)[name], mnemonic)
        if loop is None:
            raise UnavailableError(f"{name} has no loop with {mnemonic}")
        demand = demand_of(loop)
        per_turn = values * sum(mnemonic in i.text for i in loop.instructions)
        found[phase] = Cost(demand.cycles / per_turn, demand.bound)
    return found


def block_cycles(rows: int, k: int, channels: int, *, from_l2: bool) -> float:
    """Cycles of one product of 1..32 rows with a matrix of that many channels."""
    steps = -(-k // 64) * -(-channels // 32)  # 64 k by 32 channels: 32 lines of weights
    weights = 32 * _LINE / L2_BYTES_PER_CYCLE if from_l2 else 0.0
    if rows < _LEAST_TILE_ROWS:  # vpdpbusd, two a cycle of 64 products each
        return steps * max(16.0 * rows, weights)
    # Two tiles of rows, or two panels at once: four chains of products in a turn of the loop.
    chains = _CHAIN_CYCLES if rows > _TILE_ROWS else _CHAIN_CYCLES / 2
    lines = 32 + (rows if rows > _TILE_ROWS else rows / 2)
    return steps * max(2.0 * rows, lines / _LINES_PER_CYCLE, chains, weights)


def blocks_of(rows: int) -> list[int]:
    """The rows of an expert in blocks."""
    return [_BLOCK_ROWS] * (rows // _BLOCK_ROWS) + [r for r in (rows % _BLOCK_ROWS,) if r]


def buckets(scenario: Scenario) -> list[int]:
    """Rows of each expert that gets some, evenly, the shared one last."""
    pairs, experts = scenario.num_tokens * scenario.top_k, scenario.num_experts
    missed = (1 - scenario.top_k / experts) ** scenario.num_tokens
    touched = max(1, round(experts * (1 - missed)))
    few, more = divmod(pairs, touched)
    routed = [few + 1] * more + [few] * (touched - more)
    return [*routed, *([scenario.num_tokens] if scenario.options.has_shared else [])]


def router_by_tiles(scenario: Scenario) -> bool:
    """Whether candidates are found by tiles: the rule of router_candidates.cpp."""
    n, d, _, experts, top_k = scenario.shape
    options = scenario.options
    plain = options.score == "sigmoid" and options.topk_group == options.n_group
    large = d <= 4096 and experts * d >= 1 << 17 and experts // 32 >= top_k
    return plain and n >= 6 and large


def layer_cycles(scenario: Scenario, cost: dict[str, Cost]) -> LayerCycles:
    """Of one forward."""
    n, d, h, experts, _ = scenario.shape
    sizes = [block for rows in buckets(scenario) for block in blocks_of(rows)]
    pairs = sum(sizes)
    by_tiles = router_by_tiles(scenario)

    def tiles(*, from_l2: bool) -> float:
        return sum(
            block_cycles(rows, d, 2 * h, from_l2=from_l2)
            + block_cycles(rows, h, d, from_l2=from_l2)
            for rows in sizes
        )

    values = {
        "router": (0 if by_tiles else n * d * experts, ("router",)),
        "router's bounds": (n * experts if by_tiles else 0, ("bounds",)),
        "quantize x": (n * d, ("absmax", "quantize")),
        "SiLU": (pairs * h, ("swiglu",)),
        "quantize h": (pairs * h, ("quantize",)),
        "dequantize": (pairs * d, ("dequantize",)),
        "combine": (pairs * d, ("combine",)),
    }
    phases = {
        phase: count * sum(cost[kernel].cycles for kernel in kernels)
        for phase, (count, kernels) in values.items()
    }
    if by_tiles:  # four products of 16 cycles per 64 d, 16 tokens and 16 experts
        phases["router"] = 4 * 16 * -(-d // 64) * -(-n // 16) * -(-experts // 16)
    return LayerCycles(3 * pairs * d * h, tiles(from_l2=False), tiles(from_l2=True), phases)


def table(scenarios: Sequence[Scenario], cost: dict[str, Cost]) -> Table:
    """A column per layer."""
    made = Table(box=None, pad_edge=False)
    made.add_column("phase", no_wrap=True)
    made.add_column("binds", no_wrap=True)
    counted = []
    for scenario in scenarios:
        made.add_column(scenario.name or ",".join(map(str, scenario.shape)), justify="right")
        counted.append(layer_cycles(scenario, cost))

    def thousands(values: Sequence[float]) -> list[str]:
        return [f"{value / 1000:,.1f}" for value in values]

    made.add_row("tiles, weights in L1", "", *thousands([layer.tiles_l1 for layer in counted]))
    made.add_row("tiles, weights in L2", "", *thousands([layer.tiles_l2 for layer in counted]))
    kernels = {
        "SiLU": "swiglu", "quantize x": "quantize", "quantize h": "quantize",
        "router's bounds": "bounds",
    }  # fmt: skip
    for phase in counted[0].phases:
        binds = cost[kernels.get(phase, phase)].bound
        made.add_row(phase, binds, *thousands([layer.phases[phase] for layer in counted]))
    made.add_row("conversions of all", "", *(f"{c.conversions / c.total:.0%}" for c in counted))
    made.add_row("of peak", "", *(f"{c.macs / c.total / _PEAK:.0%}" for c in counted))
    return made
