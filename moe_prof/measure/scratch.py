"""The temporary folder in which a measurement and its workers exchange files."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from moe_prof.errors import MoeProfError


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A folder for the time of one measurement.

    Raises:
        MoeProfError: there is none, or it is full.
    """
    try:
        with tempfile.TemporaryDirectory(prefix="moe_prof-") as folder:
            yield Path(folder)
    except OSError as error:
        raise MoeProfError(
            f"the temporary folder cannot be used: {error.strerror or error}; free some space, or "
            "set TMPDIR to a folder that can be written"
        ) from error
