"""What bounds a quantized Mixture-of-Experts kernel on this CPU, and did the last change help."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moe_prof.errors import MoeProfError

if TYPE_CHECKING:
    from pathlib import Path

    from moe_prof.session import SavedSession

__version__ = "0.1.0"
__all__ = ["MoeProfError", "__version__", "load", "load_ipython_extension"]


def load(folder: str | Path) -> SavedSession:
    """Read a session back; its ``frame`` is the tidy pandas table.

    Raises:
        InputError: the folder is no session, or was written by a newer moe_prof.
    """
    from moe_prof import session  # noqa: PLC0415  (session imports this package)

    return session.load(folder)


def load_ipython_extension(shell: Any) -> None:  # noqa: ANN401  (IPython is no dependency)
    """What ``%load_ext moe_prof`` calls: adds the magic ``%moe_prof COMMAND ...``."""
    from moe_prof import magic  # noqa: PLC0415  (reads sessions, which import this package)

    magic.register(shell)
