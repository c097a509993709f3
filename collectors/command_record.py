"""Keeping a tool's exact command line beside its raw output, so that it can be read again later."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path


def keep_command(
    folder: Path, name: str, argv: Sequence[str], env: Mapping[str, str] | None = None
) -> Path:
    """Write ``NAME.command.json``: ``argv``, and the variables set on top of the inherited ones.

    Written before the tool starts, so that it is there also when the tool never ends.

    Raises:
        OSError: the folder cannot be written.
    """
    path = folder / f"{name}.command.json"
    path.write_text(json.dumps({"argv": list(argv), "env": dict(env or {})}) + "\n", "utf-8")
    return path
