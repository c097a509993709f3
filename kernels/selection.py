"""Choosing a variant and its instruction-set path, and preparing it.

The order of choice is the table's: best path first, the first one that runs here wins, ``isa=`` or
MOE_PROF_ISA overrides. Nothing is compiled before a plan is prepared.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol

from moe_prof.errors import UsageError
from moe_prof.kernels import build as kernel_build
from moe_prof.kernels.build import SOURCE_DIR, Build, Kind
from moe_prof.kernels.features import check_supported, isa_path, read_cpu, supported
from moe_prof.kernels.guarded_backend import GuardedBackend, guarded_weights
from moe_prof.kernels.memory import check_memory, required_bytes, weight_bytes
from moe_prof.kernels.native import NativeBackend, NativeLibrary
from moe_prof.kernels.plan import Plan
from moe_prof.kernels.table import BY_NAME, VARIANTS, VariantSpec
from moe_prof.kernels.weights import Weights, check_weights
from moe_prof.progress import SILENT, Progress
from moe_prof.scenario import Scenario

_NUMBA_MODULE = "moe_prof.kernels.numba_variants"
MAX_THREADS = 1024
MAX_WORKSPACE_TOKENS = 1 << 24


Finder = Callable[[Kind, Progress], Build]


class Variant(Protocol):
    """Something that can be prepared for weights."""

    @property
    def name(self) -> str:
        """As given on the command line."""

    def prepare(
        self, w: Weights, threads: int = 2, *, isa: str | None = None, max_tokens: int = 1024,
        build: Kind = "release", pin: bool = False, progress: Progress = SILENT,
        find: Finder = kernel_build.build,
    ) -> Plan:  # fmt: skip
        """A plan for these weights; raises MoeProfError."""


def variants() -> tuple[str, ...]:
    """Names of the variants that can run here, in table order."""
    return tuple(spec.name for spec in VARIANTS if isas(spec.name))


def isas(name: str) -> tuple[str, ...]:
    """Paths on which a variant can run here, best first.

    Raises:
        UsageError: the variant is unknown.
    """
    spec = _spec(name)
    if spec.language == "numba":
        present = find_spec(_NUMBA_MODULE) is not None
        return spec.isas if present else ()
    if not (SOURCE_DIR / "cpp" / "variants" / f"{spec.name}.cpp").is_file():
        return ()
    here = supported(read_cpu())
    return tuple(isa for isa in spec.isas if isa in here)


def variant(name: str) -> Variant:
    """A built-in variant by name, or a user's library by path (``./mine.so``, ``./mine.so:name``).

    Raises:
        UsageError: there is no variant of that name.
    """
    if isinstance(name, str) and is_library_path(name):
        return UserVariant(name)
    return BuiltinVariant(_spec(name).name)


def is_library_path(name: str) -> bool:
    """Whether a variant's name means a shared library: it has a slash or ends in .so."""
    path = name.partition(".so:")[0]
    return "/" in name or name.endswith(".so") or path != name


def library_parts(name: str) -> tuple[Path, str]:
    """The library of a variant's name, and its variant inside, "" for the first one."""
    path, _, inner = name.partition(".so:")
    return Path(f"{path}.so" if inner else name), inner


def folder_name(name: str) -> str:
    """A variant's name as that of one folder: a library's path has slashes."""
    return name.replace("/", "_").lstrip("._") or "variant"


def forced_isa(spec: VariantSpec, isa: str | None) -> str | None:
    """The path asked for, by argument or by MOE_PROF_ISA; None leaves the choice open.

    A variant that exists for ``portable`` only is there whatever path the others take, so that the
    environment variable does not take it away.

    Raises:
        UsageError: this CPU lacks the path, or the variant is not built for it.
    """
    wish = isa if isa is not None else os.environ.get("MOE_PROF_ISA") or None
    if wish is None:
        return None
    if spec.language == "numba" and isa is None:
        return None
    isa_path(wish)
    if spec.language == "c++":
        check_supported(wish, read_cpu())
    if wish not in spec.isas:
        if isa is None and spec.isas == ("portable",):
            return None
        origin = "--isa" if isa is not None else "MOE_PROF_ISA"
        raise UsageError(
            f"variant {spec.name!r} has no ISA path {wish!r} ({origin}); "
            f"it has: {', '.join(spec.isas)}"
        )
    return wish


def choose_isa(spec: VariantSpec, isa: str | None, built: Build) -> str:
    """The path on which a C++ variant runs in a finished build.

    Raises:
        UsageError: the path asked for, or every path of the variant, is not usable; says why.
    """
    wish = forced_isa(spec, isa)
    if wish is not None:
        built.library(wish)  # raises with the reason
        return wish
    for candidate in spec.isas:
        if candidate in built.isas:
            return candidate
    reasons = "; ".join(f"{path}: {built.unusable.get(path, 'not built')}" for path in spec.isas)
    raise UsageError(f"variant {spec.name!r} has no path that runs here ({reasons})")


@dataclass(frozen=True, slots=True)
class BuiltinVariant:
    """A variant of the table."""

    name: str

    def prepare(
        self, w: Weights, threads: int = 2, *, isa: str | None = None, max_tokens: int = 1024,
        build: Kind = "release", pin: bool = False, progress: Progress = SILENT,
        find: Finder = kernel_build.build,
    ) -> Plan:  # fmt: skip
        """Build the kernels if needed, choose the path, pack the weights, start the threads.

        Args:
            w: the layer's weights; arrays are kept, not copied.
            threads: size of the team, at least 1.
            isa: force an instruction-set path.
            max_tokens: tokens the workspace is made for; more are computed in slices.
            build: release, gprof, phases or portable.
            pin: bind thread i to the i-th allowed CPU.
            progress: told when something is compiled.
            find: gives the build; who prepares often may remember it.

        Raises:
            UsageError: a wrong argument, or a path that this machine lacks.
            InputError: ``w`` is not Weights.
            BuildError: the kernels cannot be compiled.
        """
        check_weights(w)
        _check_counts(threads, max_tokens)
        _check_workspace(self.name, w, max_tokens)
        spec = _spec(self.name)
        if spec.language == "numba":
            forced_isa(spec, isa)
            numba_variants = import_module(_NUMBA_MODULE)  # only now: numba is slow to import
            kernel = numba_variants.prepare(
                self.name, w, threads=threads, max_tokens=max_tokens, progress=progress
            )
            return Plan(kernel, w.d_model)
        forced_isa(spec, isa)  # refuse before minutes of compiling
        built = find(build, progress)
        library = NativeLibrary(built.library(choose_isa(spec, isa, built)))
        backend = NativeBackend(
            library, built.support, spec.name, w, threads=threads, max_tokens=max_tokens, pin=pin
        )
        return Plan(backend, w.d_model)


@dataclass(frozen=True, slots=True)
class UserVariant:
    """A kernel of the user's own: a library with the plan API, ``path.so`` or ``path.so:name``."""

    name: str

    def prepare(
        self, w: Weights, threads: int = 2, *, isa: str | None = None, max_tokens: int = 1024,
        build: Kind = "release", pin: bool = False, progress: Progress = SILENT,
        find: Finder = kernel_build.build,
    ) -> Plan:  # fmt: skip
        """Load the library and prepare its variant (its first, unless one is named).

        Raises:
            UsageError: a wrong argument; ``isa`` cannot be forced on a library.
            InputError: the library cannot be loaded or lacks the plan API.
        """
        check_weights(w)
        _check_counts(threads, max_tokens)
        _check_workspace(self.name, w, max_tokens)
        if isa is not None:
            raise UsageError(f"{self.name}: --isa chooses among built-in paths, not in a library")
        del build  # the library is as it is
        path, inner = library_parts(self.name)
        library = NativeLibrary(path.absolute())
        support = find("release", progress).support
        backend = NativeBackend(
            library, support, inner or None, guarded_weights(w),
            threads=threads, max_tokens=max_tokens, pin=pin,
        )  # fmt: skip
        return Plan(GuardedBackend(self.name, backend), w.d_model)


def _spec(name: str) -> VariantSpec:
    if not isinstance(name, str) or name not in BY_NAME:
        raise UsageError(
            f"unknown variant {name!r}; known: {', '.join(BY_NAME)}, or the path of a library"
        )
    return BY_NAME[name]


def _check_counts(threads: int, max_tokens: int) -> None:
    for label, value, limit in (
        ("threads", threads, MAX_THREADS),
        ("max_tokens", max_tokens, MAX_WORKSPACE_TOKENS),
    ):
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= limit:
            raise UsageError(f"{label} = {value!r} is not an integer in 1..{limit}")


def _check_workspace(name: str, w: Weights, max_tokens: int) -> None:
    """Refuse buffers that memory cannot hold; the weights themselves are there already."""
    shape = Scenario(max_tokens, w.d_model, w.d_ff, w.num_experts, w.top_k)
    needed = required_bytes(shape) - weight_bytes(shape)
    check_memory(f"preparing {name} for {max_tokens} tokens", needed)
