"""The process's standard streams, which may be closed, full, narrow or of another encoding.

A remark on stderr never costs a result; a result that stdout refuses is an error in one line.
"""

from __future__ import annotations

import contextlib
import os
import sys

from moe_prof.errors import MoeProfError

MIN_COLUMNS = 40
MAX_COLUMN_DIGITS = 5


def open_standard_streams() -> None:
    """Put /dev/null where stdin, stdout or stderr is closed.

    Otherwise the next pipe or file would get its number, and children would write into it.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number: this one


def say(text: str) -> None:
    """One remark on stderr; silent where stderr is closed or full."""
    if sys.stderr is None:
        return
    with contextlib.suppress(OSError):
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()


def write_result(text: str) -> None:
    """Write to stdout, ``?`` for what its encoding lacks.

    Raises:
        MoeProfError: stdout is closed or cannot take it.
        BrokenPipeError: its reader has left.
    """
    if sys.stdout is None:
        raise MoeProfError("stdout is closed; open it, or name a file with --output")
    try:
        sys.stdout.write(encodable(text, stdout_encoding()))
        sys.stdout.flush()
    except OSError as error:
        _forget_stdout()
        if isinstance(error, BrokenPipeError):
            raise
        raise MoeProfError(
            f"cannot write to stdout: {error.strerror}; name a file with --output"
        ) from error


def encodable(text: str, encoding: str) -> str:
    """The text with ``?`` for every character that the encoding lacks."""
    return text.encode(encoding, "replace").decode(encoding)


def stdout_encoding() -> str:
    """What stdout can take, ``utf-8`` where it does not say."""
    return getattr(sys.stdout, "encoding", None) or "utf-8"


def is_terminal() -> bool:
    """Whether stdout is one."""
    return sys.stdout is not None and sys.stdout.isatty()


def terminal_columns(page: int) -> int:
    """Columns of the terminal, at most ``page``; ``page`` where it does not say."""
    return max(MIN_COLUMNS, min(page, os.get_terminal_size().columns or page))


def wished_columns() -> int | None:
    """The variable COLUMNS; None where it is not set or no number of columns."""
    text = os.environ.get("COLUMNS", "")
    if not (text.isascii() and text.isdigit() and len(text) <= MAX_COLUMN_DIGITS):
        return None
    return max(MIN_COLUMNS, int(text)) if int(text) else None


def _forget_stdout() -> None:
    """Let what is still in the buffer go nowhere, or Python complains at its end."""
    null = os.open(os.devnull, os.O_WRONLY)
    with contextlib.suppress(OSError, ValueError):  # no file behind it
        os.dup2(null, sys.stdout.fileno())
    os.close(null)
