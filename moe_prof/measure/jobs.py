"""From a variant's name to its job: threads and tolerances are the table's."""

from __future__ import annotations

from moe_prof.kernels.table import BY_NAME
from moe_prof.measure.results import Job


def job_of(variant: str, isa: str | None = None) -> Job:
    """The job of a built-in variant or of a user's library (the default tolerances)."""
    if variant not in BY_NAME:
        return Job(variant, isa)
    spec = BY_NAME[variant]
    return Job(variant, isa, None if spec.threads else 1, spec.rel_rmse, spec.worst_token)
