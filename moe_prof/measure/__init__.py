"""Measuring kernel variants: worker processes, verification, interleaved rounds, time planning."""

from moe_prof.measure.parent import measure, measure_phases
from moe_prof.measure.results import (
    Job,
    Measurement,
    PhaseTimes,
    Request,
    ThreadTimes,
    VariantTiming,
)

__all__ = [
    "Job",
    "Measurement",
    "PhaseTimes",
    "Request",
    "ThreadTimes",
    "VariantTiming",
    "measure",
    "measure_phases",
]
