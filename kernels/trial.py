"""Trying the drivers of a finished build, each in a process of its own, before a path counts.

A path that the compiler believes in but the kernel or the hypervisor forbids is found out here.
"""

from __future__ import annotations

import signal
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from moe_prof.errors import BuildError
from moe_prof.kernels.elf import foreign_reason
from moe_prof.kernels.features import ISA_PATHS, missing, read_cpu
from moe_prof.kernels.target import Target

_PROBE_ARGS = ("3", "33", "31", "5", "2", "1", "--benchmark")
_PROBE_TIMEOUT_S = 60
_NOT_BUILT = "not part of this build, or the compiler has no flags for it"


def try_paths(scratch: Path) -> tuple[list[str], dict[str, str]]:
    """Which paths of a finished build run here: CPU features, then one tiny forward each."""
    cpu = read_cpu()
    usable: list[str] = []
    unusable: dict[str, str] = {}
    for path in ISA_PATHS:
        driver = scratch / f"moe_bench-{path.name}"
        lacking = missing(path, cpu)
        if lacking:
            unusable[path.name] = f"this CPU lacks {', '.join(lacking)}"
        elif not driver.is_file():
            unusable[path.name] = _NOT_BUILT
        else:
            reason = _probe(driver)
            if reason is None:
                usable.append(path.name)
            else:
                unusable[path.name] = reason
    if not usable:
        raise BuildError(f"no path of the kernels runs here: {_reasons(unusable)}")
    return usable, unusable


def try_emulated(scratch: Path, cross: Target) -> tuple[list[str], dict[str, str]]:
    """Which paths of a build for another architecture run in its emulator; all, without one."""
    usable: list[str] = []
    unusable: dict[str, str] = {}
    for path in ISA_PATHS:
        plain = scratch / f"moe_bench-{path.name}"
        emulated = scratch / f"{plain.name}-emulated"
        driver = emulated if emulated.is_file() else plain
        if not driver.is_file():
            unusable[path.name] = _NOT_BUILT
            continue
        reason = foreign_reason(driver, cross.name)
        if reason is None and cross.emulator():
            reason = _probe(driver, cross.command())
        if reason is None:
            usable.append(path.name)
        else:
            unusable[path.name] = reason
    if not usable:
        raise BuildError(
            f"no path of the kernels for {cross.name} runs here: {_reasons(unusable)}; "
            "CXX_RISCV64 names another compiler"
        )
    return usable, unusable


def _reasons(unusable: Mapping[str, str]) -> str:
    """Why the paths do not run that were built; where none was, that."""
    said = [f"{name}: {why}" for name, why in unusable.items() if why != _NOT_BUILT]
    return "; ".join(said) or "the compiler made no driver"


def _probe(driver: Path, emulator: tuple[str, ...] = ()) -> str | None:
    """Why a driver does not run here, None when it does."""
    try:
        with tempfile.TemporaryDirectory() as folder:  # the gprof build leaves a gmon.out
            done = subprocess.run(
                [*emulator, str(driver), *_PROBE_ARGS], capture_output=True, text=True,
                errors="replace", cwd=folder, timeout=_PROBE_TIMEOUT_S, check=False,
                stdin=subprocess.DEVNULL,
            )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"its driver cannot be run: {error}"
    if done.returncode == -signal.SIGILL:
        return "this kernel or hypervisor forbids instructions that the compiler chose (SIGILL)"
    if done.returncode != 0:
        said = done.stderr.strip().splitlines()[-1:] or ["no message"]
        return f"its driver failed with exit code {done.returncode}: {said[0]}"
    return None
