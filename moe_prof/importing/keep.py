"""What a session keeps of an imported file: a copy, or for a huge one where it was and its hash."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

from moe_prof.importing.source import Source

MAX_COPY_BYTES = 64 << 20


def keep(source: Source, folder: Path, number: int) -> str:
    """Put the file into the folder; returns a remark when it was too large to be copied.

    Raises:
        OSError: it cannot be written.
    """
    name = Path(source.name).name or source.name
    target = folder / f"{number:03d}-{name[-120:]}"
    folder.mkdir(parents=True, exist_ok=True)
    if source.size_bytes <= MAX_COPY_BYTES:
        shutil.copyfile(source.path, target)
        return ""
    with source.path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    origin = {
        "path": str(Path(source.name).absolute()),
        "size_bytes": source.size_bytes,
        "sha256": digest,
    }
    target.with_name(f"{target.name}.origin.json").write_text(
        json.dumps(origin, indent=1) + "\n", encoding="utf-8"
    )
    return (
        f"{source.size_bytes >> 20} MiB are too much for a copy; the session keeps the file's "
        "path and SHA-256"
    )
