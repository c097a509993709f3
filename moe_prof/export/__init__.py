"""Profiles in the formats of other viewers: one file a format, one row each in the table below.

Every format keeps the profile's sum of weights; threads stay apart where the format knows threads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from moe_prof.collectors.stacks import Profile
from moe_prof.export import callgrind, firefox, folded, hatchet, speedscope

__all__ = ["FORMATS", "Format"]


@dataclass(frozen=True, slots=True)
class Format:
    """A format: how its files end, who reads it, what writes it."""

    suffix: str
    reader: str
    write: Callable[[Profile, str], str]


FORMATS: Mapping[str, Format] = {
    "folded": Format(".folded", "flamegraph.pl, inferno, speedscope.app", folded.write),
    "speedscope": Format(".speedscope.json", "speedscope.app", speedscope.write),
    "firefox": Format(".firefox.json", "profiler.firefox.com", firefox.write),
    "callgrind": Format(".callgrind.out", "KCachegrind, callgrind_annotate", callgrind.write),
    "hatchet": Format(".hatchet.json", "hatchet.GraphFrame.from_literal", hatchet.write),
}
