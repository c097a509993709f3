"""How many planted causes ``topdown -- PROGRAM`` names: right, unknown and wrong.

Builds fixed-work programs, measures them one after the other and prints a table. In
``benchmarks/causes`` the name of each is its cause; the rules were written with these at hand. In
the folders below it a line ``Planted: CAUSE[, CAUSE].`` names what may be said, ``Build: FLAGS``
replaces the flags and ``Arguments: WORDS`` gives the command line; each folder was first judged by
rules that had not seen it.
Run: python -m benchmarks.causes [NAME...]
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).with_name("causes")
FIRST = "first"
SETS = (FIRST, "others", "more", "further")
LONGEST_S = 60
FLAGS = ("-O2",)
ALWAYS = ("-pthread", "-fopenmp")
COMPILERS = {".c": ("CC", "cc"), ".cpp": ("CXX", "c++")}
INTERPRETERS = {".py": sys.executable, ".sh": "/bin/sh"}
_PLANTED = re.compile(r"Planted: ([a-z0-9_, ]+)\.")
_BUILD = re.compile(r"Build: ([^*\n]+)")
_ARGUMENTS = re.compile(r"Arguments: ([^*\n]+)")


@dataclass(frozen=True, slots=True)
class Planted:
    """A program and the causes that may be named."""

    source: Path
    causes: tuple[str, ...]
    flags: tuple[str, ...] = FLAGS
    arguments: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Without the ending."""
        return self.source.stem


@dataclass(frozen=True, slots=True)
class Outcome:
    """One program: what was planted, what was named, in which time, and why."""

    planted: Planted
    named: str
    elapsed_s: float
    evidence: str

    @property
    def judgement(self) -> str:
        """``right``, ``unknown`` or ``WRONG``."""
        if self.named in self.planted.causes:
            return "right"
        return "unknown" if self.named == "unknown" else "WRONG"


def programs(chosen: str = "") -> tuple[Planted, ...]:
    """All of one set, or of all sets."""
    if not chosen:
        return tuple(planted for each in SETS for planted in programs(each))
    if chosen == FIRST:
        return tuple(Planted(path, (path.stem,)) for path in sorted(FOLDER.glob("*.c")))
    endings = {*COMPILERS, *INTERPRETERS}
    found = [path for path in sorted((FOLDER / chosen).iterdir()) if path.suffix in endings]
    return tuple(described(path, path.read_text("ascii")) for path in found)


def described(source: Path, text: str) -> Planted:
    """A program as the lines in its source describe it.

    Raises:
        ValueError: no line says what is planted.
    """
    flags, arguments = _BUILD.search(text), _ARGUMENTS.search(text)
    return Planted(
        source,
        planted_in(text),
        tuple(flags[1].split()) if flags else FLAGS,
        tuple(arguments[1].split()) if arguments else (),
    )


def planted_in(text: str) -> tuple[str, ...]:
    """The causes that a source says may be named.

    Raises:
        ValueError: it says none.
    """
    match = _PLANTED.search(text)
    if match is None:
        raise ValueError("no line 'Planted: CAUSE.'")
    return tuple(word.strip() for word in match[1].split(","))


def build(planted: Planted, folder: Path) -> tuple[str, ...]:
    """Compile one program, where it needs that; gives its command line."""
    source = planted.source
    if source.suffix in INTERPRETERS:
        return INTERPRETERS[source.suffix], str(source), *planted.arguments
    variable, compiler = COMPILERS[source.suffix]
    program = folder / planted.name
    line = [
        os.environ.get(variable, compiler), *planted.flags, *ALWAYS, "-o", str(program),
        str(source), "-lm",
    ]  # fmt: skip
    subprocess.run(line, check=True)
    return str(program), *planted.arguments


def measure(planted: Planted, command: Sequence[str]) -> Outcome:
    """One run of ``topdown -- PROGRAM``."""
    started_s = time.monotonic()
    line = [
        sys.executable, "-m", "moe_prof", "topdown", "--format", "json", "--max-time",
        f"{LONGEST_S}s", "--", *command,
    ]  # fmt: skip
    answer = subprocess.run(line, capture_output=True, text=True, check=False)
    elapsed_s = time.monotonic() - started_s
    if answer.returncode:
        named = f"exit {answer.returncode}"
        return Outcome(planted, named, elapsed_s, answer.stderr.strip())
    found = {row["metric"]: row["source"] for row in json.loads(answer.stdout)["rows"]}
    return Outcome(planted, found["verdict"], elapsed_s, found["verdict_evidence"])


def main() -> None:
    """Build, measure, count."""
    known = {planted.name: planted for planted in programs()}
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument(
        "names", nargs="*", choices=[*known, []], default=[], metavar="NAME",
        help=f"of {', '.join(known)} (default: all)",
    )  # fmt: skip
    parser.add_argument(
        "--set", choices=SETS, action="append", dest="sets",
        help="only this set, may be given again (default: all)",
    )  # fmt: skip
    args = parser.parse_args()
    names = args.names or [
        planted.name for chosen in args.sets or SETS for planted in programs(chosen)
    ]
    outcomes = []
    with tempfile.TemporaryDirectory() as folder:
        os.environ["MOE_PROF_SESSIONS"] = f"{folder}/sessions"
        for name in names:
            outcomes.append(measure(known[name], build(known[name], Path(folder))))
            last = outcomes[-1]
            sys.stdout.write(
                f"{last.judgement:8} {last.planted.name:21} {last.named:21} "
                f"{last.elapsed_s:5.0f} s  {last.evidence}\n"
            )
            sys.stdout.flush()
    for judgement in ("right", "unknown", "WRONG"):
        count = sum(outcome.judgement == judgement for outcome in outcomes)
        sys.stdout.write(f"{judgement}: {count} of {len(outcomes)}\n")


if __name__ == "__main__":
    main()
