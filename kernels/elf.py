"""Which architecture an ELF file is for, so that a foreign binary is named and never run.

Source: the ELF specification's file header (e_ident, e_machine at offset 18).
"""

from __future__ import annotations

import platform
import sys
from pathlib import Path

_MACHINES = {3: "i686", 22: "s390x", 21: "ppc64", 40: "arm", 62: "x86_64", 183: "aarch64",
             243: "riscv", 258: "loongarch64"}  # fmt: skip


def machine_of(path: Path) -> str | None:
    """The architecture's name (as ``platform.machine`` gives it), None when it is no ELF file.

    Raises:
        OSError: the file cannot be read.
    """
    with path.open("rb") as file:
        header = file.read(20)
    if len(header) < 20 or header[:4] != b"\x7fELF":
        return None
    order = "little" if header[5] == 1 else "big"
    code = int.from_bytes(header[18:20], "little" if order == "little" else "big")
    name = _MACHINES.get(code, f"ELF machine {code}")
    if name == "riscv":
        return "riscv64" if header[4] == 2 else "riscv32"
    if name == "ppc64" and order == "little":
        return "ppc64le"
    return name


def foreign_reason(path: Path) -> str | None:
    """Why ``path`` cannot be loaded or run here, None when its architecture is this machine's.

    Raises:
        OSError: the file cannot be read.
    """
    found = machine_of(path)
    here = platform.machine()
    if found is None:
        return f"{path} is not an ELF file"
    if found != here and sys.platform == "linux":
        return f"{path} is built for {found}, this machine is {here}"
    return None
