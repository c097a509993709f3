"""Letting a rank fail on purpose, so that a user sees what the others say on this machine."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable

from moe_prof.ep.cases import Fault
from moe_prof.ep.record import Record
from moe_prof.errors import WorkloadError

EXIT_CODE = 7


class Faulty:
    """Counts a rank's calls over all variants and fails in the one that was asked for."""

    def __init__(self, fault: Fault | None, rank: int) -> None:
        self._fault = fault if fault is not None and fault.rank == rank else None
        self._calls = 0

    def around(self, call: Callable[[Record], None]) -> Callable[[Record], None]:
        """The call, preceded by the fault; the call itself where this rank has none."""
        fault = self._fault
        if fault is None:
            return call

        def failing(record: Record) -> None:
            self._calls += 1
            if self._calls == fault.call:
                fail(fault)
            call(record)

        return failing


def fail(fault: Fault) -> None:
    """Die, leave, hang, or raise an error."""
    if fault.kind == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if fault.kind == "exit":
        os._exit(EXIT_CODE)
    while fault.kind == "hang":
        time.sleep(1)
    raise WorkloadError(f"an error was injected into call {fault.call}")
