"""The options of ``ep``: the case or a sweep of cases, and how ranks run it."""

from __future__ import annotations

import argparse
import re

from moe_prof.commands.options import (
    add_measuring,
    add_seed,
    duration_s,
    output_path,
    positive_int,
)
from moe_prof.ep.cases import DTYPES, FAULTS, ROUTINGS, TRANSPORTS, Fault
from moe_prof.errors import UsageError

DEFAULT_EXPERTS, DEFAULT_TOP_K, DEFAULT_TOKENS = 8, 4, 64
DEFAULT_DEADLINE_S = 30.0
MOST_RANKS = 512

_SHAPE = re.compile(r"\d{1,6},\d{1,6}", re.ASCII)
_FAULT = re.compile(r"(?P<kind>[a-z]+)@(?P<rank>\d{1,4})", re.ASCII)


def add_case(parser: argparse.ArgumentParser) -> None:
    """What is computed: ranks, experts, tokens, routing, dtype, seed."""
    parser.add_argument(
        "--ranks", metavar="P[,P]", type=_counts, default=None,
        help="ranks; they are started here unless mpirun has (default: mpirun's, else 1)",
    )  # fmt: skip
    parser.add_argument(
        "--experts", metavar="E", type=positive_int, default=DEFAULT_EXPERTS,
        help=f"experts of all ranks together, a multiple of P (default: {DEFAULT_EXPERTS})",
    )  # fmt: skip
    parser.add_argument(
        "--top-k", metavar="K", type=positive_int, default=DEFAULT_TOP_K,
        help=f"experts a token (default: {DEFAULT_TOP_K})",
    )  # fmt: skip
    parser.add_argument(
        "--tokens", metavar="B", type=positive_int, default=None,
        help="tokens of all ranks together, split over them in order, so that every number of "
        f"ranks computes the same output; at most 256 a rank (default: {DEFAULT_TOKENS})",
    )  # fmt: skip
    parser.add_argument(
        "--rows-per-expert", metavar="R[,R]", type=_counts, default=None,
        help="mean rows of an expert instead of --tokens: B = R E / K; several make a sweep",
    )  # fmt: skip
    parser.add_argument(
        "--routing", metavar="NAME[,NAME]", type=_routings, default=(ROUTINGS[0],),
        help=f"how tokens choose: {', '.join(ROUTINGS)} (default: {ROUTINGS[0]})",
    )  # fmt: skip
    parser.add_argument(
        "--dtype", choices=DTYPES, default=DTYPES[0],
        help=f"of tokens and output (default: {DTYPES[0]})",
    )  # fmt: skip
    add_seed(parser, "tokens, routing and weights")


def add_run(parser: argparse.ArgumentParser) -> None:
    """How it is run and measured."""
    parser.add_argument(
        "--ablate", action="store_true",
        help="also measure the fused operator with overlap only, and with cache fusion only",
    )  # fmt: skip
    parser.add_argument(
        "--verify", action="store_true", help="compare every variant with the float64 oracle"
    )
    parser.add_argument(
        "--trace", metavar="DIR", type=output_path, default=None,
        help="write a trace for Perfetto of one call a variant into DIR, a file a rank",
    )  # fmt: skip
    parser.add_argument(
        "--transport", choices=TRANSPORTS, default=TRANSPORTS[0],
        help="of the fused operator's rows: shared memory, MPI_Put, or what fits "
        f"(default: {TRANSPORTS[0]})",
    )  # fmt: skip
    parser.add_argument(
        "--deadline", metavar="TIME", type=duration_s, default=DEFAULT_DEADLINE_S,
        dest="deadline_s",
        help="a rank that others wait for so long counts as lost, in seconds or as 90s, 5m "
        f"(default: {DEFAULT_DEADLINE_S:.0f})",
    )  # fmt: skip
    parser.add_argument(
        "--inject", metavar="KIND@RANK", type=_fault, default=None,
        help=f"let a rank fail to see what is said of it: {', '.join(FAULTS)}, e.g. die@1",
    )  # fmt: skip
    add_measuring(
        parser,
        threads="threads of each rank (default: usable CPUs / ranks)",
        max_time="bound the timing of all cases together, in seconds or as 90s, 5m (default: some "
        "seconds a case)",
    )


def shape_of(text: str) -> tuple[int, int]:
    """(h, n) of ``7168,4096``; raises UsageError."""
    if not _SHAPE.fullmatch(text):
        raise UsageError(f"shape {text[:40]!r}: two sizes H,N are needed, such as 7168,4096")
    h, n = (int(part) for part in text.split(","))
    return h, n


def _counts(text: str) -> tuple[int, ...]:
    numbers = tuple(dict.fromkeys(positive_int(part.strip()) for part in text.split(",")))
    if max(numbers) > MOST_RANKS:
        raise argparse.ArgumentTypeError(f"{text[:40]!r}: at most {MOST_RANKS}")
    return numbers


def _routings(text: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(part.strip() for part in text.split(",")))
    for name in names:
        if name not in ROUTINGS:
            raise argparse.ArgumentTypeError(f"{name[:40]!r} is none of {', '.join(ROUTINGS)}")
    return names


def _fault(text: str) -> Fault:
    match = _FAULT.fullmatch(text)
    kind = next((one for one in FAULTS if match is not None and one == match["kind"]), None)
    if match is None or kind is None:
        raise argparse.ArgumentTypeError(
            f"{text[:40]!r} is not KIND@RANK with a kind of {', '.join(FAULTS)}"
        )
    return Fault(kind, int(match["rank"]))
