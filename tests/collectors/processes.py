"""Watching processes of tests end."""

from __future__ import annotations

import os
import time
from pathlib import Path

PATIENCE_S = 20.0


def ends(pid: int) -> bool:
    """Whether the process is gone, or a zombie that its new parent has yet to collect."""
    give_up = time.monotonic() + PATIENCE_S
    while time.monotonic() < give_up:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        stat = Path(f"/proc/{pid}/stat")
        if stat.exists() and stat.read_text().rsplit(")", 1)[-1].split()[0] == "Z":
            return True
        time.sleep(0.02)
    return False


def appears(path: Path) -> str:
    """The text of a file that another process is about to write."""
    give_up = time.monotonic() + PATIENCE_S
    while time.monotonic() < give_up:
        if path.exists() and (text := path.read_text()):
            return text
        time.sleep(0.02)
    raise TimeoutError(f"{path} did not appear")
