"""``python -m moe_prof`` and the ``moe-prof`` script: :func:`moe_prof.cli.main` as a process."""

from __future__ import annotations

import sys
from typing import NoReturn

from moe_prof import interrupts, streams


def entry_point() -> NoReturn:
    """Run the command line; a signal gives one line and exit code 130 from the first moment."""
    interrupts.exit_at_once()
    streams.open_standard_streams()
    from moe_prof.cli import main  # noqa: PLC0415  (takes most of a second)

    interrupts.raise_interrupts()
    try:
        code = main()
    except KeyboardInterrupt:  # a second one, while the first was being told
        code = interrupts.EXIT_INTERRUPTED
    interrupts.exit_at_once(code, remark="")
    sys.exit(code)


if __name__ == "__main__":
    entry_point()
