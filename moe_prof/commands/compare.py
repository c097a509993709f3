"""The ``compare`` command: did the last change help? Reads sessions, measures nothing."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Group, RenderableType
from rich.text import Text

from moe_prof import session as sessions
from moe_prof.analysis import comparison_rows
from moe_prof.analysis.comparison import Comparison, Side, compare, pairs_between, pairs_within
from moe_prof.analysis.crowding import warning
from moe_prof.analysis.differences import differences, identity, remarks
from moe_prof.analysis.query import RowIndex
from moe_prof.commands.base import Result
from moe_prof.commands.comparing import add_comparison, judged, refuse
from moe_prof.commands.options import output_path, split_output
from moe_prof.errors import InputError, UsageError
from moe_prof.progress import Progress
from moe_prof.render.compare_view import comparison_view
from moe_prof.session import SavedSession


class CompareCommand:
    """compare sessions: is the new one faster, slower or the same? The first session is the old
    side; each further one is compared with it, variant by variant, unpaired, since the runs had
    different rounds. One session with --variant OLD,NEW compares variants of the same rounds, in
    pairs. Refuses what was not measured alike. Example: moe-prof compare old/ new/ --fail-on 3%
    """

    name = "compare"

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Sessions, variants, and what decides the verdict."""
        parser.add_argument(
            "sessions", metavar="SESSION", nargs="+", type=Path,
            help="folder of a session; the first is the old side",
        )  # fmt: skip
        parser.add_argument(
            "--variant", metavar="NAME[,NAME]", default="",
            help="one session: OLD,NEW[,NEW]; several: names, or OLD=NEW where they differ "
            "(default: all that both have)",
        )  # fmt: skip
        add_comparison(parser)
        parser.add_argument(
            "--output", metavar="FILE", type=output_path, default=None,
            help="write the result to FILE, in the form that its name says: .json, .csv or .txt "
            "(default: stdout)",
        )  # fmt: skip

    def run(self, args: argparse.Namespace, progress: Progress) -> Result:
        """Compare; raises InputError or UsageError."""
        del progress
        if split_output(args) is not None:
            raise UsageError(f"--output {args.output}: name a file in .json, .csv or .txt")
        words = (part.strip() for part in args.variant.split(","))
        wanted = tuple(dict.fromkeys(word for word in words if word))
        loaded = [_load(path) for path in args.sessions]
        blocks = list(_blocks(loaded, wanted, args))
        comparisons = [one for block in blocks for one in block.comparisons]
        exit_code, errors = judged(comparisons, args.fail_on)
        view: list[RenderableType] = []
        for block in blocks:
            view += ["", *block.view] if view else block.view
        return Result(
            rows=tuple(comparison_rows.rows(comparisons)),
            body=Group(*view),
            machine=dict(loaded[-1].manifest.machine),
            exit_code=exit_code,
            errors=errors,
        )


@dataclass(frozen=True, slots=True)
class _Block:
    """One new side against the old one."""

    comparisons: tuple[Comparison, ...]
    view: list[RenderableType]


def side_of(saved: SavedSession) -> Side:
    """A session as one side."""
    return Side(saved.manifest.run_id, saved.rows)


def _load(path: Path) -> SavedSession:
    found = sessions.load(path)
    if not side_of(found).places:
        raise InputError(
            f"the session {path} holds no figures of a variant (state: {found.manifest.state}); "
            "measure again"
        )
    return found


def _blocks(
    loaded: Sequence[SavedSession], wanted: tuple[str, ...], args: argparse.Namespace
) -> list[_Block]:
    old = loaded[0]
    if len(loaded) == 1:
        pairs = pairs_within(side_of(old), wanted)
        found = compare(side_of(old), side_of(old), pairs, margin=args.margin)
        title = Text(f"one run: {_title(old)}")
        view = comparison_view(found, margin=args.margin, remarks=_state(old))
        return [_Block(found, [title, *view])]
    blocks = []
    for new in loaded[1:]:
        if new.manifest.run_id == old.manifest.run_id:
            raise UsageError(
                f"{old.folder} and {new.folder} are the same run; to compare variants of one run, "
                "name it once, with --variant OLD,NEW"
            )
        pairs = pairs_between(side_of(old), side_of(new), wanted)
        before, after = (identity(one.manifest, one.rows) for one in (old, new))
        couples = [(pair.old, pair.new) for pair in pairs]
        found_differences = differences(before, after, couples)
        said = refuse(found_differences, args, f"{old.folder} and {new.folder}")
        found = compare(
            side_of(old), side_of(new), pairs, margin=args.margin, alike=not found_differences
        )
        notes = [*said, *remarks(before, after), *_state(old), *_state(new)]
        view = comparison_view(found, margin=args.margin, remarks=notes)
        blocks.append(_Block(found, [*_titles(old, new), *view]))
    return blocks


def _titles(old: SavedSession, new: SavedSession) -> list[RenderableType]:
    return [Text(f"old: {_title(old)}"), Text(f"new: {_title(new)}")]


def _title(saved: SavedSession) -> str:
    made = saved.manifest
    return (
        f"{saved.folder} ({' '.join((made.command, made.scenario)).strip()}, {made.started[:16]})"
    )


def _state(saved: SavedSession) -> list[str]:
    """What lowers the trust in a session as a whole."""
    found = list(saved.remarks)
    index = RowIndex(saved.rows)
    crowded = warning(index, index.variants)
    if crowded:
        found.append(f"{saved.folder}: {crowded}")
    return found
