"""How many planted causes ``topdown -- PROGRAM`` names: right, unknown and wrong.

Builds the fixed-work programs of ``benchmarks/causes`` (the name of each is its cause), measures
them one after the other and prints a table. Run: python -m benchmarks.causes [NAME...]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).with_name("causes")
LONGEST_S = 60
FLAGS = ("-O2", "-pthread")


@dataclass(frozen=True, slots=True)
class Outcome:
    """One program: what was planted, what was named, in which time, and why."""

    planted: str
    named: str
    elapsed_s: float
    evidence: str

    @property
    def judgement(self) -> str:
        """``right``, ``unknown`` or ``WRONG``."""
        if self.named == self.planted:
            return "right"
        return "unknown" if self.named == "unknown" else "WRONG"


def build(name: str, folder: Path) -> Path:
    """Compile one program."""
    program = folder / name
    line = [os.environ.get("CC", "cc"), *FLAGS, "-o", str(program), str(FOLDER / f"{name}.c")]
    subprocess.run(line, check=True)
    return program


def measure(name: str, program: Path) -> Outcome:
    """One run of ``topdown -- PROGRAM``."""
    started_s = time.monotonic()
    line = [
        sys.executable, "-m", "moe_prof", "topdown", "--format", "json", "--max-time",
        f"{LONGEST_S}s", "--", str(program),
    ]  # fmt: skip
    answer = subprocess.run(line, capture_output=True, text=True, check=False)
    elapsed_s = time.monotonic() - started_s
    if answer.returncode:
        return Outcome(name, f"exit {answer.returncode}", elapsed_s, answer.stderr.strip())
    found = {row["metric"]: row["source"] for row in json.loads(answer.stdout)["rows"]}
    return Outcome(name, found["verdict"], elapsed_s, found["verdict_evidence"])


def main() -> None:
    """Build, measure, count."""
    known = sorted(path.stem for path in FOLDER.glob("*.c"))
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("names", nargs="*", choices=[*known, []], default=[])
    names = parser.parse_args().names or known
    outcomes = []
    with tempfile.TemporaryDirectory() as folder:
        os.environ["MOE_PROF_SESSIONS"] = f"{folder}/sessions"
        for name in names:
            outcomes.append(measure(name, build(name, Path(folder))))
            last = outcomes[-1]
            sys.stdout.write(
                f"{last.judgement:8} {last.planted:21} {last.named:21} {last.elapsed_s:5.0f} s  "
                f"{last.evidence}\n"
            )
            sys.stdout.flush()
    for judgement in ("right", "unknown", "WRONG"):
        count = sum(outcome.judgement == judgement for outcome in outcomes)
        sys.stdout.write(f"{judgement}: {count} of {len(outcomes)}\n")


if __name__ == "__main__":
    main()
