"""Kernel variants of the quantized Mixture-of-Experts layer: prepare, run, prove what ran."""

from moe_prof.kernels.info import PHASES, ChosenExperts, PhaseTimes, PlanInfo
from moe_prof.kernels.inputs import random_tokens, random_weights
from moe_prof.kernels.oracle import reference
from moe_prof.kernels.plan import Plan
from moe_prof.kernels.selection import Variant, isas, variant, variants
from moe_prof.kernels.weights import Weights

__all__ = [
    "PHASES",
    "ChosenExperts",
    "PhaseTimes",
    "Plan",
    "PlanInfo",
    "Variant",
    "Weights",
    "isas",
    "random_tokens",
    "random_weights",
    "reference",
    "variant",
    "variants",
]
