"""The fused expert-parallel decode operator: call, plan, check and measure it."""

from moe_prof.ep import small_ops
from moe_prof.ep.fused import fused_deep_moe
from moe_prof.ep.group import Group, LocalGroup, Options
from moe_prof.ep.plan import Plan, plan
from moe_prof.ep.record import Record

__all__ = [
    "Group",
    "LocalGroup",
    "Options",
    "Plan",
    "Record",
    "fused_deep_moe",
    "plan",
    "small_ops",
]
