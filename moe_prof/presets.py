"""Mixture-of-Experts layers of published models: sizes and options, from their public configs.

Source: ``config.json`` of the model named in each row (hidden_size, moe_intermediate_size or
intermediate_size, number of experts, experts per token, scoring function, groups, scaling factor,
shared experts). Several shared experts are one of their joint width; these models have one or none.
A layer in a model adds its input outside, so presets have no residual.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

Score = Literal["sigmoid", "softmax"]


@dataclass(frozen=True, slots=True)
class LayerOptions:
    """What a layer does beside its sizes; the defaults are those of S1..S4 and of plain sizes.

    Attributes:
        score: how a router output becomes an affinity.
        n_group / topk_group: routing groups, and how many of them are kept for the choice.
        routed_scaling_factor: multiplies every gate.
        has_shared: one expert more serves every token.
        has_residual: the output starts from the input.
        normalize_gates: gates are divided by their sum over the chosen experts.
    """

    score: Score = "sigmoid"
    n_group: int = 1
    topk_group: int = 1
    routed_scaling_factor: float = 1.0
    has_shared: bool = True
    has_residual: bool = True
    normalize_gates: bool = True


PLAIN = LayerOptions()


@dataclass(frozen=True, slots=True)
class Preset:
    """One model's layer.

    Attributes:
        name: as used on the command line, with ``@N`` for N tokens instead of one.
        d_model / d_ff / num_experts / top_k: D, H, E, K.
        source: where the figures come from.
    """

    name: str
    d_model: int
    d_ff: int
    num_experts: int
    top_k: int
    options: LayerOptions
    source: str


_SOFTMAX = LayerOptions(score="softmax", has_shared=False, has_residual=False)

PRESETS: dict[str, Preset] = {
    preset.name: preset
    for preset in (
        Preset(
            "deepseek-v3", 7168, 2048, 256, 8,
            LayerOptions(
                n_group=8, topk_group=4, routed_scaling_factor=2.5, has_residual=False,
            ),
            "deepseek-ai/DeepSeek-V3 config.json: sigmoid scores, 1 shared expert",
        ),
        Preset(
            "qwen3-30b-a3b", 2048, 768, 128, 8, _SOFTMAX,
            "Qwen/Qwen3-30B-A3B config.json: softmax scores, no shared expert",
        ),
        Preset(
            "mixtral-8x7b", 4096, 14336, 8, 2, _SOFTMAX,
            "mistralai/Mixtral-8x7B-v0.1 config.json: softmax scores, no shared expert",
        ),
        Preset(
            "olmoe", 2048, 1024, 64, 8, replace(_SOFTMAX, normalize_gates=False),
            "allenai/OLMoE-1B-7B-0924 config.json: softmax scores, norm_topk_prob false, no shared "
            "expert",
        ),
    )
}  # fmt: skip
