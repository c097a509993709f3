"""The package of each tool per family of distributions, and the line that installs it."""

from __future__ import annotations

from collections.abc import Sequence

_INSTALLERS: dict[str, str] = {
    "debian": "apt install",
    "fedora": "dnf install",
    "suse": "zypper install",
    "arch": "pacman -S",
    "alpine": "apk add",
}

# Words of os-release's ID and ID_LIKE, and the family whose packages they use.
_FAMILIES: dict[str, str] = {
    "debian": "debian", "ubuntu": "debian", "raspbian": "debian", "bianbu": "debian",
    "fedora": "fedora", "rhel": "fedora", "centos": "fedora", "rocky": "fedora",
    "almalinux": "fedora", "amzn": "fedora", "ol": "fedora", "openeuler": "fedora",
    "suse": "suse", "opensuse": "suse", "sles": "suse", "opensuse-leap": "suse",
    "opensuse-tumbleweed": "suse", "arch": "arch", "manjaro": "arch", "alpine": "alpine",
}  # fmt: skip

# Package names in the order of _INSTALLERS; {kernel} is the running kernel's release.
_PACKAGES: dict[str, tuple[str, str, str, str, str]] = {
    "compiler": ("g++", "gcc-c++", "gcc-c++", "gcc", "g++ musl-dev"),
    "perf": ("linux-perf", "perf", "perf", "perf", "perf"),
    "valgrind": ("valgrind", "valgrind valgrind-devel", "valgrind valgrind-devel", "valgrind",
                 "valgrind valgrind-dev"),
    "llvm": ("llvm", "llvm", "llvm", "llvm", "llvm"),
    "qemu-user": ("qemu-user", "qemu-user", "qemu-linux-user", "qemu-user", "qemu-riscv64"),
    "mpi": ("mpich", "mpich", "mpich", "mpich", "mpich"),
    "binutils": ("binutils", "binutils", "binutils", "binutils", "binutils"),
}  # fmt: skip


def family(distribution: Sequence[str]) -> str | None:
    """The family of a distribution's ID and ID_LIKE words; None when unknown."""
    return next((_FAMILIES[word] for word in distribution if word in _FAMILIES), None)


def install_line(tool: str, distribution: Sequence[str], kernel: str = "") -> str:
    """The command that installs a tool, without ``sudo``; for an unknown family, the names to try.

    Raises:
        KeyError: the tool has no row in the table.
    """
    names = _PACKAGES[tool]
    if tool == "perf" and "ubuntu" in distribution:
        return f"apt install linux-tools-{kernel}" if kernel else "apt install linux-tools-generic"
    found = family(distribution)
    if found is None:
        return f"install the package {' or '.join(dict.fromkeys(names))} of your distribution"
    return f"{_INSTALLERS[found]} {names[list(_INSTALLERS).index(found)]}"
