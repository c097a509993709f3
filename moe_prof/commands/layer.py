"""What a result must say of a model's layer: its source and options, and experts that share memory.

Sharing changes what caches and memory see, so the result says it in words before all else and in a
row of its own.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Group
from rich.text import Text

from moe_prof.analysis.differences import weights_text
from moe_prof.commands.base import Result
from moe_prof.errors import UsageError
from moe_prof.kernels import selection
from moe_prof.kernels.checkpoint import check_pattern, has_shared
from moe_prof.kernels.memory import GIB, available_bytes, check_memory, required_bytes, weight_bytes
from moe_prof.kernels.table import BY_NAME
from moe_prof.presets import PRESETS, LayerOptions, Preset
from moe_prof.rows import Row
from moe_prof.scenario import Checkpoint, Scenario
from moe_prof.session import Session

COLLECTOR = "builtin"
SEEDED = (
    "times, phases and errors are of the checkpoint's weights; what tools counted or simulated is "
    "of seeded weights of the same shape, because the native driver reads no files"
)
USABLE_SHARE = 0.9
"""Of the available memory, so that other programs may grow a little meanwhile."""


def preset_of(scenario: Scenario) -> Preset | None:
    """The model whose layer it is, None for other scenarios."""
    return PRESETS.get(scenario.name.partition("@")[0])


def with_checkpoint(scenario: Scenario, args: argparse.Namespace) -> Scenario:
    """The scenario with the weights of --weights, --layer and --pattern, where they are given.

    Plain sizes have a shared expert where the checkpoint's layer has one; a model's layer has its
    own options.

    Raises:
        UsageError: one of them is given without the others that it needs, or a bad pattern.
        InputError: the file is none, or lacks the layer.
    """
    path: Path | None = getattr(args, "weights", None)
    if path is None:
        for name in ("layer", "pattern"):
            if getattr(args, name, None) not in (None, ""):
                raise UsageError(f"--{name} says what of --weights to take; name those, too")
        return scenario
    if args.layer is None:
        raise UsageError(f"--weights {path}: which layer? add --layer L")
    pattern = check_pattern(args.pattern) if args.pattern else ""
    source = Checkpoint(str(path.absolute()), args.layer, pattern)
    shared = has_shared(source)
    if preset_of(scenario) is None:
        options = replace(scenario.options, has_shared=shared)
        scenario = replace(scenario, options=options)
    return replace(scenario, checkpoint=source)


def fitted(scenario: Scenario, variants: Sequence[str]) -> Scenario:
    """The scenario, or one of which experts share memory where a model's layer would not fit.

    The number of distinct experts is the smallest power of two of at least 2 K: it follows from the
    model alone, so that results of different machines compare.

    Raises:
        UsageError: it does not fit even then, or sizes that are no model's do not fit.
    """
    if preset_of(scenario) is None or scenario.checkpoint is not None:
        check_memory(f"scenario {scenario.label}", required_bytes(scenario))
        return scenario
    if _needed_bytes(scenario, variants) <= USABLE_SHARE * available_bytes():
        return scenario
    shared = replace(scenario, distinct_experts=1 << (2 * scenario.top_k - 1).bit_length())
    if shared.distinct_experts >= scenario.num_experts:
        shared = scenario
    what = f"scenario {scenario.label}" + (
        f" with {shared.distinct_experts} distinct experts" if shared.distinct_experts else ""
    )
    check_memory(what, _needed_bytes(shared, variants))
    return shared


def with_layer(result: Result, scenario: Scenario, session: Session) -> Result:
    """The result with its layer's rows and words, which the session takes as well."""
    preset, source = preset_of(scenario), scenario.checkpoint
    if preset is None and source is None:
        return result
    seeded = source is not None and any(_by_driver(row) for row in result.rows)
    remark = SEEDED if seeded else ""
    words = sharing_text(scenario)
    for text in filter(None, (words, remark)):
        session.note(text)
    origin = preset.source if preset is not None else "plain sizes"
    if source is not None:
        weights = weights_text(source.path, source.layer)
        origin = f"{weights}; {origin}"
    rows = session.add(_rows(scenario, origin))
    above = [Text(words, style="bold")] if words else []
    if source is not None:
        above.append(Text(f"{weights}: {options_text(scenario.options)}"))
    below = (Text(f"{scenario.label}: {remark}"),) if remark else ()
    return replace(result, rows=(*result.rows, *rows), body=Group(*above, result.body, *below))


def sharing_text(scenario: Scenario) -> str:
    """What sharing means for the figures, "" where every expert has its own memory."""
    if not scenario.distinct_experts:
        return ""
    whole, shared = replace(scenario, distinct_experts=0), scenario.distinct_experts
    return (
        f"{scenario.label}: the whole layer does not fit in memory here: its "
        f"{scenario.stored_experts} experts share the weights of {shared} distinct ones "
        f"({weight_bytes(scenario) / GIB:.1f} instead of {weight_bytes(whole) / GIB:.1f} GiB). "
        "Caches and memory see fewer bytes than the model's: of the experts that a forward needs, "
        "those that share weights are read once, so it may look faster than it is."
    )


def _by_driver(row: Row) -> bool:
    """Whether a figure is of the native driver's run."""
    return row.provenance == "simulated" or row.collector.startswith("perf")


def _needed_bytes(scenario: Scenario, variants: Sequence[str]) -> int:
    """Weights, their copies in the plans that are open at a time, and one workspace.

    A built-in variant with an order of its own lays the weights out again; a library may, and knows
    nothing of sharing.
    """
    own = weight_bytes(scenario)
    whole = weight_bytes(replace(scenario, distinct_experts=0))
    needed = required_bytes(scenario) - own
    for name in variants:
        if selection.is_library_path(name):
            needed += whole
        elif BY_NAME[name].language == "c++" and BY_NAME[name].order == "free":
            needed += own
    return needed


def _rows(scenario: Scenario, origin: str) -> list[Row]:
    rows = [
        Row(
            scenario=scenario.label, collector=COLLECTOR, metric="layer", value=None, unit="1",
            source=f"{origin}; {options_text(scenario.options)}",
        )
    ]  # fmt: skip
    if scenario.distinct_experts:
        rows.append(
            Row(
                scenario=scenario.label, collector=COLLECTOR, metric="distinct_experts",
                value=float(scenario.distinct_experts), unit="experts", status="shared_memory",
                source=sharing_text(scenario),
            )
        )  # fmt: skip
    return rows


def options_text(options: LayerOptions) -> str:
    """The options in words: ``sigmoid scores, 4 of 8 groups, gates x 2.5, a shared expert``."""
    words = [f"{options.score} scores"]
    if options.n_group > 1:
        words.append(f"{options.topk_group} of {options.n_group} groups")
    if options.routed_scaling_factor != 1:
        words.append(f"gates x {options.routed_scaling_factor:g}")
    if not options.normalize_gates:
        words.append("gates as scored")
    words.append("a shared expert" if options.has_shared else "no shared expert")
    words.append("residual" if options.has_residual else "no residual")
    return ", ".join(words)
