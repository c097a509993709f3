"""Building the C++ kernels on first use, once per sources, compiler, flags and CPU.

A build is a folder of the cache (``$MOE_PROF_CACHE``, else ``$XDG_CACHE_HOME/moe_prof``, else
``~/.cache/moe_prof``) named by a hash of all that decides its contents. It appears by one rename,
its manifest written last, under a file lock, so that processes that start together build once and
never see half a build. Every driver is tried in a process of its own before it counts: a path that
the compiler believes in but the kernel or the hypervisor forbids is recorded with its reason. A
build for another architecture (``target``) is tried in an emulator, where there is one. A new build
removes those that have not been used for long (``cache``).
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
import shlex
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import psutil

from moe_prof.errors import BuildError, UsageError
from moe_prof.kernels import cache
from moe_prof.kernels.compiler import Compiler, find_cmake, find_compiler, find_ninja
from moe_prof.kernels.elf import foreign_reason
from moe_prof.kernels.features import read_cpu, supported
from moe_prof.kernels.target import Target, ime_emulator
from moe_prof.kernels.target import target as find_target
from moe_prof.kernels.trial import try_emulated, try_paths
from moe_prof.parent_death import ended_with_this_process
from moe_prof.progress import SILENT, Progress

Kind = Literal["release", "gprof", "phases", "portable"]
KINDS: tuple[Kind, ...] = get_args(Kind)

SOURCE_DIR = Path(__file__).resolve().parent
_SOURCE_SUFFIXES = {".cpp", ".h", ".map", ".txt", ".c", ".S"}
_MANIFEST = "build.json"
_MANIFEST_SCHEMA = 3


@dataclass(frozen=True, slots=True)
class Build:
    """A finished build: the folder and the paths in it that run on this machine.

    Attributes:
        kind: release, gprof, phases or portable.
        folder: where the artifacts lie.
        isas: usable paths, best first.
        unusable: paths that were not built or do not run here, with the reason.
        compiler: what the compiler calls itself.
        openmp: whether threads are real in it.
        target: the architecture that it is for, "" for this machine's.
    """

    kind: Kind
    folder: Path
    isas: tuple[str, ...]
    unusable: dict[str, str]
    compiler: str
    openmp: bool
    target: str = ""

    def library(self, isa: str) -> Path:
        """The shared library of a path.

        Raises:
            UsageError: the path is not usable here; the message says why.
        """
        self._check(isa)
        return self.folder / f"libmoe_{isa}.so"

    def driver(self, isa: str) -> Path:
        """The native driver of a path, the program for profilers to run.

        Raises:
            UsageError: the path is not usable here; the message says why.
        """
        self._check(isa)
        emulated = self.folder / f"moe_bench-{isa}-emulated"  # with what the emulator lacks
        return emulated if emulated.is_file() else self.folder / f"moe_bench-{isa}"

    @property
    def front(self) -> Path:
        """``moe_bench``: the driver that chooses the path by itself."""
        return self.folder / "moe_bench"

    @property
    def support(self) -> Path:
        """The library with the timing loop and the machine probes."""
        return self.folder / "libmoe_support.so"

    def artifacts(self) -> tuple[Path, ...]:
        """Every file that is loaded or run."""
        if self.target:
            return (self.front, *(self.driver(isa) for isa in self.isas))
        paths = [path for isa in self.isas for path in (self.library(isa), self.driver(isa))]
        return (self.support, self.front, *paths)

    def _check(self, isa: str) -> None:
        if isa not in self.isas:
            reason = self.unusable.get(isa, "unknown path")
            raise UsageError(
                f"ISA path {isa!r} is not usable in the {self.kind} build: {reason}; "
                f"usable: {', '.join(self.isas)}"
            )


def cache_root() -> Path:
    """The folder of all builds (it may not exist yet).

    Raises:
        BuildError: it lies in a home folder that this user does not have.
    """
    chosen = os.environ.get("MOE_PROF_CACHE")
    base = os.environ.get("XDG_CACHE_HOME")
    try:
        if chosen:
            return Path(chosen).expanduser()
        return (Path(base) if base else Path.home() / ".cache") / "moe_prof"
    except RuntimeError as error:
        raise BuildError(f"no build cache: {error}; set MOE_PROF_CACHE to a folder") from error


def build(
    kind: Kind = "release",
    progress: Progress = SILENT,
    target: str = "",
    compiler: Compiler | None = None,
) -> Build:
    """The build of that kind, made now if the cache does not hold it.

    Args:
        kind: release, gprof, phases or portable.
        progress: told when something is compiled.
        target: another architecture, "" for this machine's; it has drivers only.
        compiler: None for the usual one, of the target if there is one.

    Raises:
        UsageError: the kind or the target is unknown.
        BuildError: no compiler, a failing compile, a cache that cannot be written.
    """
    if kind not in KINDS:
        raise UsageError(f"unknown build {kind!r}; known builds: {', '.join(KINDS)}")
    cross = find_target(target) if target and target != platform.machine() else None
    if compiler is None:
        compiler = find_compiler() if cross is None else cross.compiler()
    root = cache_root()
    label = f"{kind}-{cross.name}" if cross else kind
    folder = root / f"{label}-{_key(kind, compiler, cross)}"
    cache.use(folder)  # before it is opened, so that nobody removes it in between
    found = _open(folder, progress)
    if found is not None:
        return found
    try:
        root.mkdir(parents=True, exist_ok=True)
        cache.use(folder)
        with cache.locked(root / f"{folder.name}.lock"):
            found = _open(folder, progress)
            if found is None:
                _make(kind, compiler, folder, progress, cross)
                found = _open(folder, progress)
        with contextlib.suppress(OSError):  # a build that cannot be removed is no obstacle
            cache.prune(root)
    except OSError as error:
        raise BuildError(
            f"the build cache {root} cannot be used: {error.strerror or error}; "
            "set MOE_PROF_CACHE to a folder that can be written"
        ) from error
    if found is None:
        raise BuildError(f"the build in {folder} vanished while it was opened; try again")
    return found


def opened(folder: Path) -> Build:
    """The build that another process made or found in the folder, whatever the sources are now.

    Raises:
        BuildError: it is not there any more, or damaged.
    """
    cache.use(folder)
    found = _open(folder, SILENT)
    if found is None:
        raise BuildError(f"the build in {folder} vanished while it was in use; try again")
    return found


def _key(kind: Kind, compiler: Compiler, cross: Target | None) -> str:
    """Hash of everything that decides what a build contains."""
    digest = hashlib.sha256()
    cpu = read_cpu()
    facts = (
        str(_MANIFEST_SCHEMA), kind, shlex.join(compiler.argv), compiler.version,
        *((f"flags {shlex.join(compiler.flags)}",) if compiler.flags else ()),
        os.environ.get("LDFLAGS", ""), platform.machine(), cpu.model, *sorted(cpu.flags),
    )  # fmt: skip
    for fact in facts:
        digest.update(fact.encode() + b"\0")
    _add_sources(digest, cross)
    return digest.hexdigest()[:16]


def sources_digest() -> str:
    """Hash of the C++ sources alone: another one means that the kernels may have changed.

    Raises:
        BuildError: the sources are not there.
    """
    digest = hashlib.sha256()
    _add_sources(digest, None)
    return digest.hexdigest()[:16]


def _add_sources(digest: hashlib._Hash, cross: Target | None) -> None:
    for path in _sources(cross):
        digest.update(os.path.relpath(path, SOURCE_DIR).encode() + b"\0")
        digest.update(path.read_bytes() + b"\0")


def _sources(cross: Target | None) -> list[Path]:
    found = [SOURCE_DIR / "CMakeLists.txt"]
    for folder in ("cpp", "include"):
        found += [
            path for path in (SOURCE_DIR / folder).rglob("*") if path.suffix in _SOURCE_SUFFIXES
        ]
    if len(found) == 1 or not found[0].is_file():
        raise BuildError(f"the C++ sources are missing in {SOURCE_DIR}; reinstall moe-prof")
    if cross is not None:
        found += [SOURCE_DIR / cross.toolchain, *filter(None, [ime_emulator()])]
    return sorted(found)


def _open(folder: Path, progress: Progress) -> Build | None:
    """The build in the folder, None when there is none, an unfinished, damaged or foreign one."""
    try:
        manifest = json.loads((folder / _MANIFEST).read_text(encoding="utf-8"))
        if manifest["schema"] != _MANIFEST_SCHEMA:
            return None
        found = Build(
            kind=manifest["kind"], folder=folder, isas=tuple(manifest["isas"]),
            unusable=dict(manifest["unusable"]), compiler=manifest["compiler"],
            openmp=bool(manifest["openmp"]), target=manifest["target"],
        )  # fmt: skip
        digests = dict(manifest["digests"])
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None
    reasons = (_damage(path, digests.get(path.name), found.target) for path in found.artifacts())
    reason = next((reason for reason in reasons if reason), "")
    if reason:
        progress.step(f"cached kernels cannot be used: {reason}; building again", slow=True)
        return None
    return found


def _damage(path: Path, digest: str | None, target: str) -> str:
    """Why an artifact is not what was built here, "" when it is: loading another may crash."""
    try:
        reason = foreign_reason(path, target or None)
        if reason is None and _digest(path) != digest:
            reason = f"{path} has changed since it was built"
    except OSError as error:
        reason = f"{path}: {error.strerror}"
    if reason is None and path.suffix != ".so" and not os.access(path, os.X_OK):
        reason = f"{path} may not be executed"
    return reason or ""


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _make(
    kind: Kind, compiler: Compiler, folder: Path, progress: Progress, cross: Target | None
) -> None:
    """Configure, compile, try the drivers, write the manifest, move into place."""
    for left_over in folder.parent.glob(f"{folder.name}.*/"):  # by a build that was killed
        shutil.rmtree(left_over, ignore_errors=True)
    scratch = Path(tempfile.mkdtemp(prefix=f"{folder.name}.", dir=folder.parent))
    try:
        what = f"{kind}, {cross.name}" if cross else kind
        with progress.task(f"building the C++ kernels ({what}, first use) ...", slow=True):
            manifest = _compile(kind, compiler, scratch, folder, cross)
        (scratch / _MANIFEST).write_text(json.dumps(manifest, indent=1))
        _remove(folder)
        scratch.rename(folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _remove(path: Path) -> None:
    """Make room for a folder, whatever is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _compile(
    kind: Kind, compiler: Compiler, scratch: Path, folder: Path, cross: Target | None
) -> dict[str, object]:
    log = folder.parent / f"{folder.name}.log"
    cmake = find_cmake()
    configure = [
        str(cmake), "-S", str(SOURCE_DIR), "-B", str(scratch), "-G", "Ninja",
        f"-DCMAKE_MAKE_PROGRAM={find_ninja()}", f"-DMOE_KIND={kind}",
        f"-DCMAKE_CXX_COMPILER={_compiler_program(compiler, scratch)}",
        f"-DMOE_COMPILER_IS_ZIG={'ON' if compiler.is_zig else 'OFF'}",
        f"-DMOE_EXTRA_FLAGS={';'.join(compiler.flags)}",
    ]  # fmt: skip
    if cross is None:
        configure.append(f"-DMOE_PATHS={';'.join(supported(read_cpu()))}")  # others cannot run here
    else:
        configure.append(f"-DCMAKE_TOOLCHAIN_FILE={SOURCE_DIR / cross.toolchain}")
        configure.append(f"-DMOE_IME_EMULATOR={ime_emulator() or ''}")
        configure.append("-DMOE_PHASE_MARKS=ON")  # an emulator has no time to tell
    text = _run(configure, "", log)
    _run([str(cmake), "--build", str(scratch)], text, log)
    shutil.rmtree(scratch / "CMakeFiles", ignore_errors=True)  # objects, half of the size
    isas, unusable = try_paths(scratch) if cross is None else try_emulated(scratch, cross)
    openmp = (scratch / "openmp.txt").read_text(encoding="utf-8").strip() == "ON"
    target = "" if cross is None else cross.name
    made = Build(kind, scratch, tuple(isas), unusable, compiler.version, openmp, target)
    return {
        "schema": _MANIFEST_SCHEMA,
        "kind": kind,
        "isas": isas,
        "unusable": unusable,
        "compiler": compiler.version,
        "openmp": openmp,
        "target": target,
        "digests": {path.name: _digest(path) for path in made.artifacts()},
    }


def _compiler_program(compiler: Compiler, scratch: Path) -> str:
    """One file that CMake can call; a compiler of several words gets a script."""
    if len(compiler.argv) == 1:
        return compiler.argv[0]
    script = scratch / "compiler.sh"
    script.write_text(f'#!/bin/sh\nexec {shlex.join(compiler.argv)} "$@"\n')
    script.chmod(0o755)
    return str(script)


def _run(argv: list[str], log_text: str, log: Path) -> str:
    """Run one step of the build; returns the log so far.

    Raises:
        BuildError: the step failed; the message carries the compiler's first errors.
    """
    # Flags come from CMakeLists.txt alone: CXXFLAGS could vectorize the baseline or raise its ISA.
    env = {k: v for k, v in os.environ.items() if k not in ("CXXFLAGS", "CFLAGS")}
    env |= {"LC_ALL": "C", "CLICOLOR_FORCE": "0"}
    with subprocess.Popen(
        argv, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        errors="replace", stdin=subprocess.DEVNULL, start_new_session=True,
    ) as process:  # fmt: skip
        try:
            with ended_with_this_process(process.pid):
                output, _ = process.communicate()
        except BaseException:  # Ctrl-C: the compilers that ninja started must end as well
            _kill_tree(process.pid)
            raise
    log_text += f"$ {shlex.join(argv)}\n{output}\n"
    if process.returncode != 0:
        log.write_text(log_text, encoding="utf-8")
        raise BuildError(f"the C++ kernels did not build: {first_errors(output)} (log: {log})")
    return log_text


def _kill_tree(pid: int) -> None:
    """End a process and all below it, wherever its process groups are."""
    with contextlib.suppress(psutil.NoSuchProcess):
        top = psutil.Process(pid)
        for process in (top, *top.children(recursive=True)):
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()


def first_errors(output: str, limit: int = 2) -> str:
    """The first error lines of a compiler's or CMake's output, joined in one line."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    marks = ("error:", "cmake error", "undefined reference", "ld: ")
    errors = [line for line in lines if any(mark in line.lower() for mark in marks)]
    return " | ".join(errors[:limit] or lines[-limit:] or ["no output"])
