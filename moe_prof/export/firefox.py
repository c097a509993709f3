"""The Firefox Profiler's processed format, version 47, which every later version upgrades.

Samples are laid one after the other: the profile has weights, not times, so that the time axis is
the sum of weights and no course of events.

Source: firefox-devtools/profiler, docs-developer/processed-profile-format.md and CHANGELOG-formats.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

from moe_prof import __version__
from moe_prof.collectors.stacks import Frame, Profile, Stack
from moe_prof.export.viewing import by_functions, thread_title, threads

PROCESSED_VERSION, GECKO_VERSION = 47, 27
_OTHER = 0  # the only category
_LIBRARY = 1  # type of a resource
_MS_PER_S = 1e3


def write(profile: Profile, title: str) -> str:
    """The text of the file."""
    viewed = by_functions(profile)
    in_seconds = profile.unit == "s"
    made = [
        _thread(index, name, stacks, in_seconds=in_seconds)
        for index, (name, stacks) in enumerate(threads(viewed))
    ]
    document = {
        "meta": {
            "interval": 1,
            "startTime": 0,
            "processType": 0,
            "product": title,
            "stackwalk": 1,
            "version": GECKO_VERSION,
            "preprocessedProfileVersion": PROCESSED_VERSION,
            "importedFrom": f"moe-prof {__version__}",
            "symbolicationNotSupported": True,
            "usesOnlyOneStackType": True,
            "doesNotUseFrameImplementation": True,
            "sourceCodeIsNotOnSearchfox": True,
            "categories": [{"name": "Other", "color": "grey", "subcategories": ["Other"]}],
            "extensions": {"id": [], "name": [], "baseURL": [], "length": 0},
            "markerSchema": [],
        },
        "libs": [],
        "pages": [],
        "counters": [],
        "threads": made,
    }
    return json.dumps(document) + "\n"


@dataclass
class _Tables:
    """The tables of one thread; an index stands for each string, function, frame and stack."""

    strings: dict[str, int] = field(default_factory=dict)
    functions: dict[tuple[str, str], int] = field(default_factory=dict)
    resources: dict[str, int] = field(default_factory=dict)
    frames: dict[tuple[int, bool], int] = field(default_factory=dict)
    stacks: dict[tuple[int | None, int], int] = field(default_factory=dict)

    def string(self, text: str) -> int:
        return self.strings.setdefault(text, len(self.strings))

    def stack(self, frames: Sequence[Frame]) -> int | None:
        """The index of a stack, built from the outermost frame on."""
        at: int | None = None
        for frame in frames:
            at = self.stacks.setdefault((at, self._frame(frame)), len(self.stacks))
        return at

    def _frame(self, frame: Frame) -> int:
        key = (frame.function, frame.module_name)
        self.string(frame.function)
        if frame.module_name:
            self.string(frame.module_name)
            self.resources.setdefault(frame.module_name, len(self.resources))
        function = self.functions.setdefault(key, len(self.functions))
        return self.frames.setdefault((function, frame.inlined), len(self.frames))


def _thread(
    index: int, name: str, stacks: Sequence[Stack], *, in_seconds: bool
) -> dict[str, object]:
    tables = _Tables()
    scale = _MS_PER_S if in_seconds else 1.0
    weights = [stack.weight * scale for stack in stacks]
    times = _sums(weights)
    samples = {
        "weightType": "tracing-ms" if in_seconds else "samples",
        "weight": weights,
        "stack": [tables.stack(stack.frames) for stack in stacks],
        "time": times,
        "length": len(stacks),
    }
    return {
        "name": thread_title(name),
        "isMainThread": index == 0,
        "processType": "default",
        "processName": "moe_bench",
        "processStartupTime": 0,
        "processShutdownTime": None,
        "registerTime": 0,
        "unregisterTime": None,
        "pausedRanges": [],
        "pid": "0",
        "tid": index,
        "samples": samples,
        "markers": {
            "data": [], "name": [], "startTime": [], "endTime": [], "phase": [], "category": [],
            "length": 0,
        },
        "stackTable": _stack_table(tables),
        "frameTable": _frame_table(tables),
        "funcTable": _function_table(tables),
        "resourceTable": _resource_table(tables),
        "nativeSymbols": {
            "libIndex": [], "address": [], "name": [], "functionSize": [], "length": 0,
        },
        "stringArray": list(tables.strings),
    }  # fmt: skip


def _sums(weights: Sequence[float]) -> list[float]:
    """Where each sample begins."""
    begins, at = [], 0.0
    for weight in weights:
        begins.append(at)
        at += weight
    return begins


def _stack_table(tables: _Tables) -> dict[str, object]:
    count = len(tables.stacks)
    return {
        "prefix": [prefix for prefix, _ in tables.stacks],
        "frame": [frame for _, frame in tables.stacks],
        "category": [_OTHER] * count,
        "subcategory": [0] * count,
        "length": count,
    }


def _frame_table(tables: _Tables) -> dict[str, object]:
    count = len(tables.frames)
    nothing = [None] * count
    return {
        "address": [-1] * count,
        "inlineDepth": [int(inlined) for _, inlined in tables.frames],
        "category": [_OTHER] * count,
        "subcategory": [0] * count,
        "func": [function for function, _ in tables.frames],
        "nativeSymbol": nothing,
        "innerWindowID": [0] * count,
        "implementation": nothing,
        "line": nothing,
        "column": nothing,
        "length": count,
    }


def _function_table(tables: _Tables) -> dict[str, object]:
    count = len(tables.functions)
    nothing = [None] * count
    return {
        "name": [tables.strings[function] for function, _ in tables.functions],
        "resource": [tables.resources.get(module, -1) for _, module in tables.functions],
        "isJS": [False] * count,
        "relevantForJS": [False] * count,
        "fileName": nothing,
        "lineNumber": nothing,
        "columnNumber": nothing,
        "length": count,
    }


def _resource_table(tables: _Tables) -> dict[str, object]:
    count = len(tables.resources)
    return {
        "lib": [None] * count,
        "name": [tables.strings[module] for module in tables.resources],
        "host": [None] * count,
        "type": [_LIBRARY] * count,
        "length": count,
    }
