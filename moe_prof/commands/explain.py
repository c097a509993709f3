"""``explain``: what one or several sessions show, in words with their evidence."""

from __future__ import annotations

import argparse
from pathlib import Path

from moe_prof import session as sessions
from moe_prof.commands.base import Result
from moe_prof.commands.options import add_output, split_output
from moe_prof.errors import UnavailableError, UsageError
from moe_prof.explain import explain
from moe_prof.progress import Progress
from moe_prof.render import findings as view


class ExplainCommand:
    """say what sessions show, in words with their evidence. Rules see through figures that mislead
    (IPC of threads that spin, a miss rate that rose because references fell), name what costs, and
    say what cannot be compared; none speaks without its rows. Several sessions are read as before
    and after, in their order. Example: moe-prof explain moe_prof_sessions/RUN
    """

    name = "explain"

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """The sessions."""
        parser.add_argument(
            "sessions", metavar="SESSION", nargs="+", type=Path,
            help="folder of a session, measured here or made by 'moe-prof import'; the earlier "
            "measurement first",
        )  # fmt: skip
        add_output(parser)

    def run(self, args: argparse.Namespace, progress: Progress) -> Result:
        """Read and explain.

        Raises:
            UsageError: a session is named twice, or ``--output`` names a folder.
            InputError: a folder is no session.
            UnavailableError: not one session has a row.
        """
        del progress
        if split_output(args) is not None:
            raise UsageError(
                f"--output {args.output}: explain makes no session; name a .json, .csv or .txt file"
            )
        _check_distinct(args.sessions)
        loaded = [sessions.load(folder) for folder in args.sessions]
        if not any(row.variant for saved in loaded for row in saved.rows):
            raise UnavailableError(
                f"{loaded[0].folder}: there is no row of any variant to explain; measure first, "
                "e.g. 'moe-prof topdown S3'"
            )
        findings = explain(loaded)
        return Result(
            rows=tuple(view.rows(findings)),
            body=view.body(findings),
            machine=dict(loaded[-1].manifest.machine),
            remarks=tuple(remark for saved in loaded for remark in saved.remarks),
        )


def _check_distinct(folders: list[Path]) -> None:
    known: set[Path] = set()
    for folder in folders:
        if folder.resolve() in known:
            raise UsageError(f"{folder} is named twice; before and after must be two sessions")
        known.add(folder.resolve())
