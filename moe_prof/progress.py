"""Progress lines on stderr: only for work longer than two seconds, and in place on a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

QUIET_S = 2.0


class Progress:
    """Tells the user what is going on, on stderr; silent until the run has taken ``QUIET_S``."""

    def __init__(self, stream: TextIO | None = None, *, enabled: bool = True) -> None:
        self._stream = stream if stream is not None else sys.stderr
        self._enabled = enabled
        self._start_s = time.monotonic()
        self._shown = ""

    def step(self, text: str, *, slow: bool = False) -> None:
        """Say what starts now; ``slow`` says it at once because the step itself will take long."""
        if not self._enabled:
            return
        if not slow and time.monotonic() - self._start_s < QUIET_S:
            return
        if self._stream.isatty():
            self.clear()
            self._stream.write(text)
        elif text != self._shown:
            self._stream.write(f"{text}\n")
        self._shown = text
        self._stream.flush()

    def clear(self) -> None:
        """Remove the line in progress from the terminal."""
        if self._shown and self._stream.isatty():
            self._stream.write("\r\x1b[K")
            self._stream.flush()

    @contextmanager
    def task(self, text: str, *, slow: bool = False) -> Iterator[None]:
        """A step with an end."""
        self.step(text, slow=slow)
        try:
            yield
        finally:
            self.clear()


SILENT = Progress(enabled=False)
