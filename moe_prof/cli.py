"""The command line: parse, run one command, print its result, turn errors into exit codes.

``main(argv)`` is the whole program and the only place that prints or decides the exit code;
``moe_prof.__main__`` makes a process of it.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import os
import re
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NoReturn

from rich.console import Console

from moe_prof import __version__, streams
from moe_prof.commands import COMMANDS
from moe_prof.commands.base import EXIT_ERROR, Command, Result
from moe_prof.commands.options import add_format, format_of
from moe_prof.errors import MoeProfError, UsageError
from moe_prof.interrupts import EXIT_INTERRUPTED
from moe_prof.progress import Progress
from moe_prof.rows import COLUMNS, to_json_record

PAGE_COLUMNS = 100

_EXIT_CODES = (
    "exit codes: 0 ok; 1 error; 2 usage; 3 the data asked for is unavailable here; "
    "4 regression found; 5 too noisy to say; 6 the workload failed"
)


class _Parser(argparse.ArgumentParser):
    """argparse that raises instead of exiting, so that one place handles every error.

    Sizes such as ``-4,32,32,4,2`` reach the scenario's own check, as Python 3.14 does by itself.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401
        super().__init__(*args, **kwargs)
        self._negative_number_matcher = re.compile(r"-\.?\d")

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}; see {self.prog} --help")

    def _print_message(self, message: str, file: object = None) -> None:
        """Help and version go the way of every result."""
        del file
        streams.write_result(message)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line; returns the exit code."""
    progress = Progress()
    try:
        words = list(sys.argv[1:] if argv is None else argv)
        own, program = _split_program(words)
        args = _parse(own)
        if args is None:
            return 0
        args.program = program
        args.argv = tuple(words)
        command: Command = args.command_object
        args.format = format_of(args)
        result = command.run(args, progress)
        progress.clear()
        try:
            if not result.silent:
                _print(result, args)
        finally:
            if result.session is not None:
                streams.say(f"session: {result.session}")
    except MoeProfError as error:
        _complain(progress, str(error), error)
        return error.exit_code
    except MemoryError as error:
        _complain(
            progress, "out of memory; use smaller sizes, or raise the limit (ulimit -v)", error
        )
        return EXIT_ERROR
    except KeyboardInterrupt as error:
        _complain(progress, "interrupted", error)
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        return 0  # the reader of a pipe (head, less) has left: not an error of ours
    for line in result.remarks:
        streams.say(f"moe-prof: note: {_one_line(line)}")
    for line in result.errors:
        streams.say(f"moe-prof: {_one_line(line)}")
    return result.exit_code


def _split_program(words: list[str]) -> tuple[list[str], tuple[str, ...]]:
    """The words before and after ``--``, for the commands that measure any program.

    Raises:
        UsageError: nothing stands behind ``--``.
    """
    names = [command.name for command in COMMANDS if getattr(command, "takes_program", False)]
    if "--" not in words or not words or words[0] not in names:
        return words, ()
    place = words.index("--")
    if not words[place + 1 :]:
        raise UsageError(f"{words[0]} --: name the program to measure behind it")
    return words[:place], tuple(words[place + 1 :])


def _complain(progress: Progress, text: str, error: BaseException) -> None:
    progress.clear()
    lines = (text, *getattr(error, "__notes__", ()))
    for line in lines:
        streams.say(f"moe-prof: {_one_line(line)}")


def _parse(argv: list[str]) -> argparse.Namespace | None:
    parser = _Parser(
        prog="moe-prof",
        description=(
            "What bounds a quantized Mixture-of-Experts kernel on this CPU, what to try next, and "
            "whether the last change helped."
        ),
        epilog=f"example: moe-prof topdown S3.  {_EXIT_CODES}",
    )
    parser.add_argument("--version", action="version", version=f"moe-prof {__version__}")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=False)
    for command in COMMANDS:
        _add_command(subparsers, command)
    try:
        args = parser.parse_args(argv)
    except SystemExit as stop:  # --help and --version print and stop
        if stop.code in (0, None):
            return None
        raise
    if args.command is None:
        parser.print_help()
        return None
    return args


def _add_command(
    subparsers: argparse._SubParsersAction[_Parser],
    command: Command,
) -> None:
    text = " ".join((type(command).__doc__ or "").split())
    parser = subparsers.add_parser(
        command.name,
        help=text.split(". ")[0].rstrip("."),
        description=text,
        epilog=_EXIT_CODES,
    )
    command.configure(parser)
    add_format(parser)
    parser.set_defaults(command_object=command)


def _print(result: Result, args: argparse.Namespace) -> None:
    output: Path | None = getattr(args, "output_file", None)
    text = _rendered(result, args.format, to_file=output is not None)
    if output is None:
        streams.write_result(text)
        return
    try:
        output.write_text(streams.encodable(text, "utf-8"), encoding="utf-8")
    except OSError as error:
        raise MoeProfError(
            f"cannot write {output}: {error.strerror}; name a writable file with --output"
        ) from error
    streams.say(f"result: {output}")


def _rendered(result: Result, form: str, *, to_file: bool) -> str:
    if form == "json":
        document = {
            "schema": 1,
            "session": str(result.session) if result.session is not None else None,
            "machine": result.machine,
            "rows": [to_json_record(row) for row in result.rows],
        }
        return json.dumps(document, indent=1, allow_nan=False, default=_json_default) + "\n"
    if form == "csv":
        buffer = io.StringIO()
        writer = csv.DictWriter(buffer, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(asdict(row) for row in result.rows)
        return buffer.getvalue()
    page = _Page("utf-8" if to_file else streams.stdout_encoding())
    terminal = streams.is_terminal() and not to_file
    width = streams.terminal_columns(PAGE_COLUMNS) if terminal else PAGE_COLUMNS
    console = Console(
        file=page,
        force_terminal=terminal,
        no_color=not terminal or "NO_COLOR" in os.environ,
        width=streams.wished_columns() or width,
        highlight=False,
    )
    console.print(result.body)
    return page.getvalue()


class _Page(io.StringIO):
    """What is printed for a stream of some encoding: rich then keeps to ASCII where it must."""

    encoding: str = "utf-8"

    def __init__(self, encoding: str) -> None:
        super().__init__()
        self.encoding = encoding


def _json_default(value: object) -> object:
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")


def _one_line(text: str) -> str:
    return " ".join(text.split())
