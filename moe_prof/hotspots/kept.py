"""Call stacks kept in a session, in the folded form, so that they can be drawn on any machine.

They lie in ``stacks/``, one file a variant, its name quoted as in addresses so that it can be read
back. Files that ``--export folded`` wrote, and folded files that were imported, are found as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import quote, unquote

from moe_prof.collectors.stacks import Profile, parse_folded
from moe_prof.errors import InputError
from moe_prof.export import folded

FOLDER = "stacks"
SUFFIX = ".folded"
MOST_BYTES = 32 << 20
"""Of a file that is read back."""
_IMPORTED = "raw"


def keep_profile(session: Path, variant: str, profile: Profile) -> Path:
    """Write the stacks of a variant.

    Raises:
        OSError: the folder cannot be written.
    """
    path = session / FOLDER / f"{quote(variant, safe='')}{SUFFIX}"
    path.parent.mkdir(exist_ok=True)
    path.write_text(folded.write(profile, variant), encoding="utf-8")
    return path


def read_profiles(session: Path, variants: Sequence[str]) -> Iterator[tuple[str, Profile]]:
    """Variants and their stacks; files that hold none are passed over."""
    kept = sorted((session / FOLDER).glob(f"*{SUFFIX}"))
    found = {unquote(path.name.removesuffix(SUFFIX)): path for path in kept}
    for variant in variants:
        exported = session / f"{variant.replace('/', '_')}{SUFFIX}"
        if variant not in found and exported.is_file():
            found[variant] = exported
    for variant, path in found.items():
        profile = _read(path)
        if profile is not None:
            yield variant, profile
    if found:
        return
    for path in sorted((session / _IMPORTED).glob("[0-9][0-9][0-9]-*")):
        profile = _read(path)
        if profile is not None and not profile.notes:
            yield path.name[4:], profile


def _read(path: Path) -> Profile | None:
    """The stacks of a file; None where it holds none, or cannot be read."""
    try:
        if not path.is_file() or path.stat().st_size > MOST_BYTES:
            return None
        return parse_folded(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, InputError):
        return None
