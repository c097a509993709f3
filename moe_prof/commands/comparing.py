"""What ``compare`` and ``bench --vs`` share: options, refusals, exit codes."""

from __future__ import annotations

import argparse
import re
from collections.abc import Collection, Iterable, Sequence

from moe_prof.analysis.comparison import Comparison
from moe_prof.analysis.decision import MARGIN, exceeds
from moe_prof.analysis.differences import NAMES, Difference
from moe_prof.errors import NoisyError, RegressionFoundError, UnavailableError, UsageError
from moe_prof.render.compare_view import ratio_text

MAX_PERCENT = 1000.0
_PERCENT = re.compile(r"(?P<number>\d+(?:\.\d+)?) ?%", re.ASCII)


def add_comparison(parser: argparse.ArgumentParser) -> None:
    """--margin, --fail-on, --allow, --force."""
    parser.add_argument(
        "--margin", metavar="P%", type=percent, default=MARGIN,
        help="call it the same when the whole interval is this near to 1 (default: "
        f"{100 * MARGIN:g}%%)",
    )  # fmt: skip
    parser.add_argument(
        "--fail-on", metavar="P%", type=percent, default=None, dest="fail_on",
        help="for CI: exit code 4 when the new one is slower by more than this, with its interval; "
        "5 when that cannot be told (default: exit code 0 whatever is found)",
    )  # fmt: skip
    parser.add_argument(
        "--allow", metavar="NAME[,NAME]", type=names, default=(),
        help=f"compare although these differ: {', '.join(NAMES)} (default: refuse)",
    )  # fmt: skip
    parser.add_argument(
        "--force", action="store_true", help="compare whatever differs (default: refuse)"
    )


def percent(text: str) -> float:
    """A fraction from ``3%``; the sign is needed, since 0.03 could mean two things."""
    match = _PERCENT.fullmatch(text.strip())
    value = float(match["number"]) if match is not None else 0.0
    if not 0 < value <= MAX_PERCENT:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a percentage such as 3% or 0.5%")
    return value / 100


def names(text: str) -> tuple[str, ...]:
    """Names of what may differ."""
    found = tuple(part.strip() for part in text.split(",") if part.strip())
    for name in found:
        if name not in NAMES:
            raise argparse.ArgumentTypeError(f"{name[:40]!r} is none of {', '.join(NAMES)}")
    if not found:
        raise argparse.ArgumentTypeError(f"no name; it takes {', '.join(NAMES)}")
    return found


def refuse(found: Iterable[Difference], args: argparse.Namespace, what: str) -> tuple[str, ...]:
    """Remarks about the differences that are accepted.

    Raises:
        UsageError: others differ; names all of them.
    """
    allowed: Collection[str] = NAMES if args.force else args.allow
    differ = tuple(found)
    wrong = [one for one in differ if one.name not in allowed]
    if wrong:
        words = ",".join(dict.fromkeys(one.name for one in differ))
        raise UsageError(
            f"{what} differ in {'; '.join(one.text for one in wrong)}: measure again alike, or "
            f"compare all the same with --allow {words}"
        )
    return tuple(f"compared although they differ in {one.text}" for one in differ)


def judged(comparisons: Sequence[Comparison], fail_on: float | None) -> tuple[int, tuple[str, ...]]:
    """The exit code and the lines that say why it is not 0.

    Between two runs the baseline is the yardstick: it fails nothing while there are others.
    """
    others = [c for c in comparisons if not (c.pair.is_baseline and c.run_id != c.old_run_id)]
    counted = others or list(comparisons)
    if fail_on is None:
        useless = all(one.ratio is None and not one.counts for one in counted)
        reasons = tuple(dict.fromkeys(one.reason for one in counted))
        return (UnavailableError.exit_code, reasons) if useless else (0, ())
    limit = f"{100 * fail_on:g} %"
    slower, missing, unsure = [], [], []
    for one in counted:
        interval = one.ratio.interval if one.ratio is not None else None
        label = f"{one.pair.new_scenario} {one.pair.label}".strip()
        if interval is None or interval.low is None or interval.high is None:
            missing.append(f"{label}: no ratio to judge: {one.reason}")
            continue
        words = f"{ratio_text(interval.low)} .. {ratio_text(interval.high)} of the old time"
        answer = exceeds(interval, fail_on)
        if answer:
            slower.append(f"{label}: slower by more than {limit}: {words}")
        elif answer is None:
            unsure.append(f"{label}: too noisy to exclude that it is slower by {limit}: {words}")
    codes = (
        (RegressionFoundError.exit_code, slower), (UnavailableError.exit_code, missing),
        (NoisyError.exit_code, unsure),
    )  # fmt: skip
    code = next((code for code, lines in codes if lines), 0)
    return code, (*slower, *missing, *unsure)
