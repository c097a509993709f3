"""Ctrl-C, a batch system's SIGTERM and a closed terminal's SIGHUP: one orderly end for all.

A signal that the parent had ignored (nohup, a background job) stays ignored.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import NoReturn

EXIT_INTERRUPTED = 130
AGAIN_S = 0.05

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def exit_at_once(code: int = EXIT_INTERRUPTED, remark: str = "moe-prof: interrupted\n") -> None:
    """From now on a signal ends the process: there is nothing to save yet, or any more."""

    def leave(number: int, frame: FrameType | None) -> NoReturn:
        del number, frame
        with contextlib.suppress(OSError):
            os.write(2, remark.encode())
        os._exit(code)

    _handle(leave)


def raise_interrupts() -> None:
    """From now on a signal raises KeyboardInterrupt in the main thread, whatever it is doing."""
    _handle(signal.default_int_handler)
    sys.unraisablehook = _raise_again


def _handle(handler: Callable[[int, FrameType | None], object]) -> None:
    for number in _SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handler)


def _raise_again(lost: sys.UnraisableHookArgs) -> None:
    """Repeat an interrupt that struck where no exception can be raised, as in a destructor."""
    if issubclass(lost.exc_type, KeyboardInterrupt):
        main = threading.main_thread().ident
        if main is not None:  # to that thread itself, since it may be waiting in a system call
            threading.Timer(AGAIN_S, signal.pthread_kill, (main, signal.SIGINT)).start()
        return
    sys.__unraisablehook__(lost)
