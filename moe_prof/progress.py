"""Progress lines on stderr: only for work longer than two seconds, and in place on a terminal.

A stderr that is closed or full makes it silent; it never costs the work.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

QUIET_S = 2.0
_CLEAR = "\r\x1b[K"


class Progress:
    """Tells the user what is going on, on stderr; silent until the run has taken ``QUIET_S``."""

    def __init__(self, stream: TextIO | None = None, *, enabled: bool = True) -> None:
        self._stream: TextIO | None = stream if stream is not None else sys.stderr
        self._enabled = enabled and self._stream is not None
        self._start_s = time.monotonic()
        self._shown = ""

    def step(self, text: str, *, slow: bool = False) -> None:
        """Say what starts now; ``slow`` says it at once because the step itself will take long."""
        if not self._enabled:
            return
        if not slow and time.monotonic() - self._start_s < QUIET_S:
            return
        if self._terminal():
            self._write(f"{_CLEAR if self._shown else ''}{text}")
        elif text != self._shown:
            self._write(f"{text}\n")
        self._shown = text

    def clear(self) -> None:
        """Remove the line in progress from the terminal."""
        if self._shown and self._terminal():
            self._write(_CLEAR)

    @contextmanager
    def task(self, text: str, *, slow: bool = False) -> Iterator[None]:
        """A step with an end."""
        self.step(text, slow=slow)
        try:
            yield
        finally:
            self.clear()

    def _terminal(self) -> bool:
        return self._enabled and self._stream is not None and self._stream.isatty()

    def _write(self, text: str) -> None:
        if self._stream is None:
            return
        try:
            self._stream.write(text)
            self._stream.flush()
        except OSError:
            self._enabled = False


SILENT = Progress(enabled=False)
