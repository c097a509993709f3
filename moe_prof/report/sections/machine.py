"""The machine, the exact commands, the tools' versions and the variables that mattered."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from moe_prof.report.material import Material, Source
from moe_prof.report.parts import Cell, Context, Part, Table, titled
from moe_prof.units import bytes_text

MOST_COMMANDS = 40
_LONGEST_COMMAND = 600
_HELPERS = ("addr2line", "objdump", "c++filt")
"""Tools that only name addresses: their calls say nothing about the measurement."""


def make(material: Material) -> Context:
    """Tables for each session; of later ones only what differs from the first."""
    first = material.sources[0]
    known = dict(_facts(first))
    parts = [_part(first, "Machine and run", _facts(first))]
    for source in material.sources[1:]:
        facts = [(name, text) for name, text in _facts(source) if known.get(name) != text]
        parts.append(_part(source, f"What differs from {first.label}", facts))
    several = len(material.sources) > 1
    labels = [source.label for source in material.sources]
    pairs = zip(labels, parts, strict=True)
    return {"parts": [titled(part, label) if several else part for label, part in pairs]}


def _part(source: Source, caption: str, facts: list[tuple[str, str]]) -> Part:
    tables = [_table(caption, "fact", facts)] if facts else []
    commands = _commands(source.session.folder)
    if commands:
        tables.append(
            _table("Commands of the tools, as they were run", "tool", commands, folded=True)
        )
    return Part(tables=tuple(tables), notes=source.session.manifest.notes)


def _facts(source: Source) -> list[tuple[str, str]]:
    manifest = source.session.manifest
    facts = [
        ("session", manifest.run_id),
        ("command", shlex.join(["moe-prof", *map(str, manifest.argv)])),
        ("started", manifest.started),
        ("took", "" if manifest.elapsed_s is None else f"{manifest.elapsed_s:.0f} s"),
        ("state", manifest.state),
        ("seed", str(manifest.seed)),
        *_machine(manifest.machine),
        *((f"variable {name}", str(value)) for name, value in manifest.environment.items()),
        ("moe_prof", manifest.moe_prof_version),
        ("Python", manifest.python_version),
        *((name, str(version)) for name, version in manifest.tools.items()),
    ]
    return [(name, text) for name, text in facts if text]


def _table(
    caption: str, title: str, lines: list[tuple[str, str]], *, folded: bool = False
) -> Table:
    rows = tuple((Cell(name), Cell(text, wide=True)) for name, text in lines)
    return Table(caption, (title, "what"), rows, folded=folded)


def _machine(facts: Mapping[str, Any]) -> list[tuple[str, str]]:
    core = facts.get("microarchitecture")
    system = [facts.get("kernel"), *_list(facts.get("distribution")), facts.get("container")]
    memory = facts.get("memory_total_bytes")
    return [
        ("CPU", _text(facts.get("model_name"))),
        ("core", _text(core.get("name")) if isinstance(core, dict) else ""),
        ("architecture", _text(facts.get("architecture"))),
        ("usable CPUs", _text(facts.get("usable_cpus"))),
        ("caches", ", ".join(_cache(c) for c in _list(facts.get("caches")) if isinstance(c, dict))),
        ("memory", bytes_text(memory) if isinstance(memory, int | float) else ""),
        ("hypervisor", _text(facts.get("hypervisor"))),
        ("hardware counters", {True: "yes", False: "none"}.get(facts.get("has_pmu", 0), "")),
        ("governors", ", ".join(map(_text, _list(facts.get("governors"))))),
        ("system", " ".join(_text(part) for part in system if part)),
    ]


def _cache(cache: Mapping[str, Any]) -> str:
    size = cache.get("size_bytes")
    kind = {"Data": "d", "Instruction": "i"}.get(str(cache.get("type")), "")
    return f"L{_text(cache.get('level'))}{kind} " + (
        bytes_text(size) if isinstance(size, int | float) else "?"
    )


def _commands(folder: Path) -> list[tuple[str, str]]:
    """What the tools were started with, each command once."""
    found: dict[str, str] = {}
    for path in sorted((folder / "raw").glob("**/*.command.json")):
        try:
            argv = json.loads(path.read_text(encoding="utf-8"))["argv"]
            words = [str(word) for word in argv]
        except (OSError, ValueError, TypeError, KeyError):
            continue  # a file that was cut off says nothing
        if not words or Path(words[0]).name in _HELPERS:
            continue
        text = shlex.join(words)
        if len(text) > _LONGEST_COMMAND:
            text = f"{text[:_LONGEST_COMMAND]}…"
        found.setdefault(text, Path(words[0]).name)
    return [(tool, text) for text, tool in found.items()][:MOST_COMMANDS]


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _text(value: object) -> str:
    return "" if value is None else str(value)
