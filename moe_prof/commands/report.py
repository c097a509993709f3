"""``report``: saved sessions as one HTML file that opens offline."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from rich.console import Group, RenderableType
from rich.text import Text

from moe_prof.commands.base import Result
from moe_prof.errors import MoeProfError, UsageError
from moe_prof.progress import Progress
from moe_prof.report import Material, Page, read_material, render
from moe_prof.units import bytes_text

FOLDER = Path("reports")
SUFFIXES = (".html", ".htm")
_LONGEST_NAME = 100
HEAVY_BYTES = 2_000_000
"""A page beyond this is slow to open on a phone."""


class ReportCommand:
    """write saved sessions as one HTML page for reading, printing and passing on. The page opens
    offline in any browser and loads nothing; it begins with a summary in words and ends with the
    machine, the commands and the data. Sections without data are left out, with the reason.
    Example: moe-prof report moe_prof_sessions/20260101-120000-abcdef-topdown-S3 -o S3.html
    """

    name = "report"

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """The sessions and the file."""
        parser.add_argument(
            "sessions", metavar="SESSION", nargs="+",
            help="folders of sessions, as every measuring command and 'import' names them",
        )  # fmt: skip
        parser.add_argument(
            "-o", "--output", metavar="FILE", dest="page", type=Path, default=None,
            help=f"the HTML file to write (default: a new one in ./{FOLDER})",
        )  # fmt: skip
        parser.add_argument(
            "--accuracy", action="store_true",
            help="also compute what quantization costs for the sessions' layers, with one "
            "activation scale a token and with one for all (some seconds)",
        )  # fmt: skip

    def run(self, args: argparse.Namespace, progress: Progress) -> Result:
        """Read, render, write; raises InputError for a folder that is no session."""
        path: Path | None = args.page
        if path is not None:
            _check(path)
        progress.step("reading sessions")
        material = read_material(args.sessions, accuracy=args.accuracy)
        progress.step("drawing")
        page = render(material)
        path = path or _default_path(material)
        _write(path, page.html)
        rows = tuple(row for source in material.sources for row in source.rows)
        size_bytes = len(page.html.encode("utf-8"))
        remarks = [one for source in material.sources for one in source.session.remarks]
        if size_bytes > HEAVY_BYTES:
            size = bytes_text(size_bytes)
            remarks.append(f"the page has {size}, which opens slowly; report fewer sessions")
        return Result(
            rows=rows,
            body=_body(path, page),
            machine=dict(material.sources[0].session.manifest.machine),
            remarks=tuple(remarks),
        )


def _check(path: Path) -> None:
    """Refuse a name that is no page's before any work."""
    if path.suffix.lower() not in SUFFIXES:
        raise UsageError(f"--output {path}: a report is an HTML file; end its name in .html")
    if path.is_dir():
        raise UsageError(f"--output {path}: this is a folder; name a file in it")
    if not path.absolute().parent.is_dir():
        raise UsageError(f"--output {path}: there is no folder {path.parent}; make it first")


def _default_path(material: Material) -> Path:
    """Named by the first session's run, so that the same report replaces itself."""
    manifest = material.sources[0].session.manifest
    words = [manifest.scenario, manifest.command, manifest.run_id]
    more = len(material.sources) - 1
    text = "-".join([*filter(None, words), *([f"and-{more}"] if more else [])])
    kept = "".join(c if c.isascii() and (c.isalnum() or c in "-_") else "x" for c in text)
    return FOLDER / f"{kept[:_LONGEST_NAME] or 'report'}.html"


def _write(path: Path, text: str) -> None:
    """The whole page or none."""
    temporary = path.with_name(f"{path.name}.tmp")
    try:
        path.parent.mkdir(exist_ok=True)
        try:
            temporary.write_text(text, encoding="utf-8")
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise MoeProfError(
            f"cannot write {path}: {error.strerror}; name a writable file with --output"
        ) from error


def _body(path: Path, page: Page) -> RenderableType:
    size = bytes_text(len(page.html.encode("utf-8")))
    lines: Sequence[str] = (
        f"report: {path} ({size}, {len(page.sections)} sections)",
        *(f"left out: {title}: {reason}" for title, reason in page.left_out),
    )
    return Group(*(Text(line) for line in lines))
