"""Options that several commands share: one spelling, one help text, one check."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from moe_prof.errors import MoeProfError, UsageError
from moe_prof.kernels.build import Kind
from moe_prof.kernels.checkpoint import PATTERNS
from moe_prof.kernels.selection import MAX_THREADS
from moe_prof.measure.results import DEFAULT_BUDGET_S
from moe_prof.presets import PRESETS

SCENARIO_HELP = (
    f"S1, S2, S3, S4, a model's layer ({', '.join(PRESETS)}; NAME@N for N tokens instead of one), "
    "or sizes N,D,H,E,K such as 128,256,128,16,4"
)
MAX_TIME_S = 10_000 * 3600
"""Longer than any run; a few hundred digits would be infinite."""
PORTABLE: Kind = "portable"
TIMED_BUILDS: tuple[Kind, ...] = ("release", PORTABLE)
FORMATS = ("text", "json", "csv")
FORMAT_OF_SUFFIX = {".json": "json", ".csv": "csv", ".txt": "text"}
FOREIGN_SUFFIXES = {".html", ".htm", ".parquet", ".pdf", ".xlsx"}
"""Suffixes of files that no command writes; a folder of that name would not be what was meant."""

_DURATION = re.compile(r"(?P<number>\d+(?:\.\d+)?)(?P<unit>s|m|h)?", re.ASCII)
_WHOLE = re.compile(r"[0-9]{1,19}")
_SECONDS = {None: 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}


def add_workload(
    parser: argparse.ArgumentParser, *, default_variants: str, or_program: bool = False
) -> None:
    """SCENARIO, --variant, --threads, --isa, --seed, --repeat, --max-time, --output.

    ``or_program``: any program may stand in place of the scenario, behind ``--``.
    """
    if or_program:
        parser.add_argument(
            "scenario", metavar="SCENARIO", nargs="?", default=None,
            help=f"{SCENARIO_HELP}; or '-- COMMAND' in the end of the line: any program, its own "
            "arguments behind it",
        )  # fmt: skip
    else:
        parser.add_argument("scenario", metavar="SCENARIO", help=SCENARIO_HELP)
    add_run(parser, default_variants=default_variants)


def add_run(parser: argparse.ArgumentParser, *, default_variants: str) -> None:
    """--variant, --threads, --isa, --seed, --repeat, --max-time, --output."""
    parser.add_argument(
        "--variant", metavar="NAME[,NAME]", default=default_variants,
        help=f"kernel variants, or 'all' (default: {default_variants}); see 'moe-prof list'",
    )  # fmt: skip
    add_seed(parser, "weights and tokens")
    add_measuring(
        parser,
        threads="threads of each variant (default: the CPUs that this process may use)",
        max_time="bound the whole run but for a first build of the kernels, in seconds or as 90s, "
        f"5m, 1h; measures less to fit (default: about {DEFAULT_BUDGET_S:.0f} s of timing, "
        "simulations end after two minutes)",
    )
    add_output(parser)


def add_seed(parser: argparse.ArgumentParser, what: str) -> None:
    """--seed: of what the random numbers make."""
    parser.add_argument(
        "--seed", metavar="S", type=seed_int, default=0, help=f"seed of {what} (default: 0)"
    )


def add_measuring(parser: argparse.ArgumentParser, *, threads: str, max_time: str) -> None:
    """--threads, --isa, --repeat, --max-time: help for those whose meaning is a command's own."""
    parser.add_argument("--threads", metavar="T", type=thread_count, default=None, help=threads)
    parser.add_argument(
        "--isa", metavar="PATH", default=None,
        help="force an instruction-set path, e.g. avx2 (default: the best that this CPU has)",
    )  # fmt: skip
    parser.add_argument(
        "--repeat", metavar="R", type=positive_int, default=None,
        help="rounds of measurement (default: as many as the time allows)",
    )  # fmt: skip
    parser.add_argument(
        "--max-time", metavar="TIME", type=duration_s, default=None, dest="max_time_s",
        help=max_time,
    )  # fmt: skip


def add_weights(parser: argparse.ArgumentParser) -> None:
    """--weights, --layer, --pattern: a model's own weights instead of seeded ones."""
    parser.add_argument(
        "--weights", metavar="PATH", type=output_path, default=None,
        help="a .safetensors file, or a folder of them, with int8 weights and scales as "
        "compressed-tensors writes them (default: seeded weights)",
    )  # fmt: skip
    parser.add_argument(
        "--layer", metavar="L", type=seed_int, default=None,
        help="the layer's number in the names of --weights",
    )  # fmt: skip
    parser.add_argument(
        "--pattern", metavar="NAME", default="",
        help=f"names of the experts' matrices in --weights (default: {' or '.join(PATTERNS)})",
    )  # fmt: skip


def require_scenario(args: argparse.Namespace) -> None:
    """Refuse a command line without a scenario and without a program.

    Raises:
        UsageError: neither is there.
    """
    if args.scenario is None:
        raise UsageError(
            "the following arguments are required: SCENARIO (or -- COMMAND); see moe-prof "
            f"{args.command} --help"
        )


def add_build(parser: argparse.ArgumentParser) -> None:
    """--build: which of the builds without instrumentation."""
    parser.add_argument(
        "--build", choices=TIMED_BUILDS, default=TIMED_BUILDS[0],
        help="build to time: 'portable' has the architecture's baseline instructions only, as a "
        f"binary for any machine would (default: {TIMED_BUILDS[0]})",
    )  # fmt: skip


def force_path_of_build(args: argparse.Namespace) -> None:
    """The portable build has one path: ``args.isa`` becomes that.

    Raises:
        UsageError: another path was asked for.
    """
    if args.build != PORTABLE:
        return
    if args.isa not in (None, PORTABLE):
        raise UsageError(f"--build {PORTABLE} has no path {args.isa!r}; leave out --isa or --build")
    args.isa = PORTABLE


def add_output(parser: argparse.ArgumentParser) -> None:
    """--output: a folder for the session, or a file for the printed result."""
    parser.add_argument(
        "--output", metavar="PATH", type=output_path, default=None,
        help="folder for the session, new or empty (default: a new one in ./moe_prof_sessions), "
        "or, with a name ending in .json, .csv or .txt, a file for the result in that form",
    )  # fmt: skip


def output_path(text: str) -> Path:
    """A path that names something: the empty one would be the current folder."""
    if not text:
        raise argparse.ArgumentTypeError("the path is empty")
    return Path(text)


def add_format(parser: argparse.ArgumentParser) -> None:
    """--format: None where it is not given, so that the name of a result file can tell it."""
    parser.add_argument(
        "--format", choices=FORMATS, default=None,
        help="form of the result (default: that of the --output file's name, else text)",
    )  # fmt: skip


def format_of(args: argparse.Namespace) -> str:
    """The form asked for by ``--format``, or by the name of the result file.

    Raises:
        UsageError: the two contradict each other.
    """
    output: Path | None = getattr(args, "output", None)
    told = None if output is None else FORMAT_OF_SUFFIX.get(output.suffix.lower())
    if args.format is not None and told not in (None, args.format):
        raise UsageError(
            f"--output {output} says {told}, --format says {args.format}; leave one of them out"
        )
    return args.format or told or FORMATS[0]


def split_output(args: argparse.Namespace) -> Path | None:
    """Sort ``--output`` into session folder (returned) and result file (``args.output_file``).

    Raises:
        UsageError: the parent folder of a result file does not exist, or it is itself a folder.
        MoeProfError: the result file cannot be written, which is better known before measuring.
    """
    output: Path | None = args.output
    args.output_file = None
    if output is None:
        return None
    suffix = output.suffix.lower()
    if suffix in FOREIGN_SUFFIXES:
        raise UsageError(
            f"--output {output}: no {suffix} file can be written; end the name in "
            f"{', '.join(FORMAT_OF_SUFFIX)}, or name a folder"
        )
    try:
        if suffix not in FORMAT_OF_SUFFIX:
            return output
        if output.is_dir():
            raise UsageError(f"--output {output}: this is a folder; name a file or another folder")
        if not output.absolute().parent.is_dir():
            raise UsageError(
                f"--output {output}: there is no folder {output.parent}; make it first"
            )
        try_to_write(output)
    except OSError as error:
        raise MoeProfError(
            f"cannot write {output}: {error.strerror}; name a writable file with --output"
        ) from error
    args.output_file = output
    return None


def try_to_write(path: Path) -> None:
    """Open the file for writing without changing what is there."""
    new = not path.exists()
    with path.open("a", encoding="utf-8"):
        pass
    if new:
        path.unlink()


def positive_int(text: str) -> int:
    """A whole number of at least 1."""
    number = _whole_number(text)
    if number is None or number < 1:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a whole number of at least 1")
    return number


def thread_count(text: str) -> int:
    """A whole number from 1 to the kernels' limit."""
    count = positive_int(text)
    if count > MAX_THREADS:
        raise argparse.ArgumentTypeError(f"{text!r} is more than {MAX_THREADS} threads")
    return count


def seed_int(text: str) -> int:
    """A whole number in 0..2^63-1."""
    number = _whole_number(text)
    if number is None or number >= 1 << 63:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a whole number from 0 to 2^63-1")
    return number


def _whole_number(text: str) -> int | None:
    """The number that plain digits of a sensible length stand for."""
    return int(text) if _WHOLE.fullmatch(text) else None


def duration_s(text: str) -> float:
    """Seconds from ``90``, ``90s``, ``1.5m`` or ``1h``; must be positive."""
    match = _DURATION.fullmatch(text.strip())
    seconds = float(match["number"]) * _SECONDS[match["unit"]] if match is not None else 0.0
    if not 0 < seconds <= MAX_TIME_S:
        raise argparse.ArgumentTypeError(
            f"{text[:40]!r} is not a time such as 90s, 5m or 1h, at most {MAX_TIME_S // 3600} h"
        )
    return seconds
