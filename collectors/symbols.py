"""Source positions of addresses by addr2line, inlined functions included, and names by c++filt.

Source: binutils manual, addr2line and c++filt; addresses are those of the object file, as perf
script and callgrind write them.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from moe_prof.collectors.toolrun import run_tool
from moe_prof.errors import ToolError

NAME = "addr2line"
FILTER = "c++filt"
TIMEOUT_S = 60.0

_ADDRESS = re.compile(r"0x[0-9a-f]+")
_PLACE = re.compile(r"(?P<file>.+):(?P<line>[0-9]{1,9}|\?)(?: \(discriminator \d+\))?")


@dataclass(frozen=True, slots=True)
class Location:
    """A function and a position in it; file "" and line None where there is no line information."""

    function: str
    file: str
    line: int | None


def argv(module: Path) -> tuple[str, ...]:
    """The command that reads addresses from stdin; names are demangled."""
    return (NAME, "-e", str(module), "-a", "-f", "-i", "-C")


def locate(
    addresses: Mapping[str, Iterable[int]], folder: Path
) -> Mapping[tuple[str, int], tuple[Location, ...]]:
    """Locations of addresses by module, innermost first; what cannot be found is left out.

    Never raises for a module that cannot be read: line information is an addition.
    """
    if shutil.which(NAME) is None:
        return {}
    found: dict[tuple[str, int], tuple[Location, ...]] = {}
    for index, (module, wanted) in enumerate(addresses.items()):
        if not Path(module).is_file():
            continue
        listing = folder / f"{NAME}-{index}.addresses"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            listing.write_text("".join(f"{address:#x}\n" for address in sorted(set(wanted))))
            result = run_tool(
                argv(Path(module)), folder=folder, name=f"{NAME}-{index}", timeout_s=TIMEOUT_S,
                stdin=listing,
            )  # fmt: skip
        except (OSError, ToolError):
            continue
        for address, locations in parse(result.stdout).items():
            found[module, address] = locations
    return found


def parse(text: str) -> dict[int, tuple[Location, ...]]:
    """Locations by address; an address of which nothing is known is left out."""
    found: dict[int, list[Location]] = {}
    current: list[Location] = []
    function = ""
    for line in text.splitlines():
        if _ADDRESS.fullmatch(line):
            current = found.setdefault(int(line, 16), [])
            function = ""
        elif not function:
            function = line
        else:
            match = _PLACE.fullmatch(line)
            file = match["file"] if match and match["file"] != "??" else ""
            number = int(match["line"]) if match and file and match["line"] != "?" else None
            if function != "??" or file:
                current.append(Location(function, file, number or None))
            function = ""
    return {address: tuple(locations) for address, locations in found.items() if locations}


def demangled(names: Iterable[str], folder: Path) -> dict[str, str]:
    """Names of C++ functions as they are written; those that c++filt does not know stay.

    Never raises where it is missing: names are then as the symbol table has them.
    """
    wanted = list(dict.fromkeys(names))
    unchanged = {name: name for name in wanted}
    if shutil.which(FILTER) is None:
        return unchanged
    listing = folder / f"{FILTER}.names"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        listing.write_text("".join(f"{name}\n" for name in wanted))
        result = run_tool((FILTER,), folder=folder, name=FILTER, timeout_s=TIMEOUT_S, stdin=listing)
    except (OSError, ToolError):
        return unchanged
    lines = result.stdout.splitlines()
    if result.returncode or len(lines) != len(wanted):
        return unchanged
    return dict(zip(wanted, lines, strict=True))
