"""What two measurements differ in, so that their times must not be compared unasked. Pure.

A change of the code that is measured is what a comparison is made for; everything that would be
taken for it is named: each by one word, which ``--allow`` takes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from moe_prof.analysis.query import RowIndex
from moe_prof.rows import Row
from moe_prof.session import IMPORT_COMMAND, Manifest
from moe_prof.toolversions import BUILD_TOOL, SOURCES_TOOL

Name = Literal[
    "scenario", "weights", "seed", "machine", "build", "compiler", "threads", "path", "program",
]  # fmt: skip
NAMES: tuple[Name, ...] = get_args(Name)

_MACHINE_FACTS = (
    "architecture", "vendor", "model_name", "family", "model", "stepping", "features", "caches",
    "usable_cpus", "governors", "turbo",
)  # fmt: skip
_COMPILER_VARIABLES = ("CXX", "CXXFLAGS", "LDFLAGS")
_LONGEST_VALUE = 40
WEIGHTS_OF = "weights of"


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that differs: its name, and both sides in words."""

    name: Name
    old: str
    new: str

    @property
    def text(self) -> str:
        """``seed (0, 1)``."""
        return f"{self.name} ({self.old}; {self.new})"


@dataclass(frozen=True, slots=True)
class VariantFacts:
    """How one variant ran; None and "" where it is not known."""

    threads: int | None
    path: str


@dataclass(frozen=True, slots=True)
class Identity:
    """What decides a measurement's times, apart from the code that is measured.

    Attributes:
        imported: figures from another machine, of which nothing is known here.
        tools: version by name, as a manifest has them.
        variants: how each ran.
        program: name and arguments of a program that was measured, "" for a scenario.
        weights: file and layer that the weights are from, "" for seeded ones.
    """

    scenario: str
    shape: tuple[int, ...]
    seed: int
    imported: bool
    machine: Mapping[str, Any]
    tools: Mapping[str, str]
    environment: Mapping[str, str]
    variants: Mapping[str, VariantFacts] = field(default_factory=dict)
    program: str = ""
    weights: str = ""


def identity(manifest: Manifest, rows: Iterable[Row]) -> Identity:
    """The identity of a saved session."""
    index = RowIndex(rows)
    facts = {}
    for name in index.variants:
        threads = index.value(name, "threads")
        known = index.row(name, "isa")
        path = known.source if known is not None and known.provenance != "unavailable" else ""
        facts[name] = VariantFacts(None if threads is None else int(threads), path)
    scenarios = {row.scenario for row in index.summary_rows() if row.variant}
    return Identity(
        scenario=manifest.scenario or (scenarios.pop() if len(scenarios) == 1 else ""),
        shape=manifest.shape,
        seed=manifest.seed,
        imported=manifest.command == IMPORT_COMMAND,
        machine=manifest.machine,
        tools=manifest.tools,
        environment=manifest.environment,
        variants=facts,
        program=manifest.program,
        weights=_weights(index.text("", "layer")),
    )


def weights_text(path: str, layer: int) -> str:
    """What weights of a file are called in a session's row ``layer`` and here."""
    return f"{WEIGHTS_OF} {path}, layer {layer}"


def _weights(origin: str) -> str:
    return origin.partition("; ")[0] if origin.startswith(WEIGHTS_OF) else ""


def differences(
    old: Identity, new: Identity, pairs: Collection[tuple[str, str]]
) -> tuple[Difference, ...]:
    """Everything that forbids a comparison of the pairs (old variant, new variant)."""
    found = [*_inputs(old, new), *_machines(old, new), *_threads(old, new, pairs)]
    if not (old.imported or new.imported):
        found += _tool("build", old, new, BUILD_TOOL)
        found += _compilers(old, new)
    for name, same in pairs:
        before, after = old.variants.get(name), new.variants.get(same)
        if name == same and before and after and before.path and after.path:
            found += _unequal("path", before.path, after.path, f"{name}: ")
    return tuple(found)


def remarks(old: Identity, new: Identity) -> tuple[str, ...]:
    """What a reader should know of, though it does not forbid a comparison."""
    found = []
    before, after = (side.tools.get(SOURCES_TOOL, "") for side in (old, new))
    if before and after:
        same = "the same" if before == after else "different"
        found.append(f"built-in C++ kernels: {same} sources in both sessions")
    variables = sorted({*old.environment, *new.environment} - {*_COMPILER_VARIABLES})
    for name in variables:
        values = [side.environment.get(name, "unset") for side in (old, new)]
        if values[0] != values[1]:
            found.append(f"{name} differs: {values[0]}; {values[1]}")
    if old.imported and new.imported:
        found.append("imported figures do not tell their machine, seed and build: check them")
    return tuple(found)


def _inputs(old: Identity, new: Identity) -> list[Difference]:
    found = _unequal("scenario", old.scenario or "unknown", new.scenario or "unknown")
    if not found and old.shape and new.shape:
        found = _unequal("scenario", _sizes(old.shape), _sizes(new.shape))
    if old.program and new.program:
        found += _unequal("program", old.program, new.program)
    if not (old.imported or new.imported):
        found += _unequal("weights", old.weights or "seeded", new.weights or "seeded")
        found += _unequal("seed", str(old.seed), str(new.seed))
    return found


def _machines(old: Identity, new: Identity) -> list[Difference]:
    if old.imported != new.imported:
        words = ["unknown" if side.imported else "this one" for side in (old, new)]
        return _unequal("machine", *words)
    return [] if old.imported else machine_differences(old.machine, new.machine)


def machine_differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Difference]:
    """The first fact by which two machines are not the same, as manifests have them."""
    for fact in _MACHINE_FACTS:
        before, after = old.get(fact), new.get(fact)
        if before is not None and after is not None and _plain(before) != _plain(after):
            if isinstance(before, (list, tuple)):
                return [Difference("machine", f"other {fact}", "than these")]
            return _unequal("machine", f"{fact} {before}", f"{fact} {after}")
    return []


def _compilers(old: Identity, new: Identity) -> list[Difference]:
    found = _tool("compiler", old, new, "c++")
    for name in _COMPILER_VARIABLES:
        values = [side.environment.get(name, "") for side in (old, new)]
        if values[0] != values[1]:
            words = [f"{name}={value}" if value else f"no {name}" for value in values]
            found += _unequal("compiler", *words)
    return found


def _threads(old: Identity, new: Identity, pairs: Collection[tuple[str, str]]) -> list[Difference]:
    for name, same in pairs:
        before, after = old.variants.get(name), new.variants.get(same)
        if before and after and before.threads and after.threads:
            found = _unequal("threads", str(before.threads), str(after.threads))
            if found:
                return found
    return []


def _tool(name: Name, old: Identity, new: Identity, key: str) -> list[Difference]:
    before, after = old.tools.get(key, ""), new.tools.get(key, "")
    return _unequal(name, before, after) if before and after else []


def _unequal(name: Name, old: str, new: str, prefix: str = "") -> list[Difference]:
    if old == new:
        return []
    return [Difference(name, prefix + old[:_LONGEST_VALUE], new[:_LONGEST_VALUE])]


def _sizes(shape: tuple[int, ...]) -> str:
    return ",".join(str(size) for size in shape)


def _plain(value: object) -> object:
    """Lists and tuples alike: a machine read now has the one, a manifest the other."""
    return [_plain(one) for one in value] if isinstance(value, (list, tuple)) else value
