"""The built-in sources by several compilers: which jobs, under which names."""

import argparse
from pathlib import Path

import pytest

from moe_prof.commands import toolchains
from moe_prof.commands.bench import BASELINE
from moe_prof.errors import NoCompilerError, UsageError
from moe_prof.kernels import build as kernel_build
from moe_prof.kernels import compiler
from moe_prof.kernels.build import Build
from moe_prof.kernels.compiler import Compiler
from moe_prof.measure import Measurement, VariantTiming
from moe_prof.progress import SILENT

GXX = Compiler(("g++",), "g++ 12", is_zig=False)


@pytest.fixture
def asked(monkeypatch):
    """Play compilers and builds; collects what was to be built."""
    monkeypatch.delenv("MOE_PROF_ISA", raising=False)
    compilers = []

    def build(kind, progress, *, compiler):
        del progress
        compilers.append((kind, compiler))
        return Build(kind, Path(f"/cache/{len(compilers)}"), ("portable",), {}, "", openmp=True)

    monkeypatch.setattr(toolchains.kernel_build, "build", build)
    monkeypatch.setattr(
        toolchains, "named_compiler", lambda command, origin: Compiler((command,), origin, False)
    )
    monkeypatch.setattr(toolchains, "find_compiler", lambda: GXX)
    return compilers


def jobs_of(variants, *, cc=(), cflags=()):
    """The jobs of ``bench`` with these options."""
    args = argparse.Namespace(cc=list(cc), cflags=list(cflags))
    return toolchains.compiled_jobs(
        toolchains.toolchains(args), variants, isa=None, build="release", baseline=BASELINE,
        progress=SILENT,
    )  # fmt: skip


def test_nothing_changes_without_the_options(asked):
    """The usual build under the usual names."""
    jobs = jobs_of(("scalar", "autovec"))
    assert {name: job.variant for name, job in jobs.items()} == {
        "scalar": "scalar", "autovec": "autovec",
    }  # fmt: skip
    assert not asked


def test_each_compiler_has_its_jobs(asked):
    """One library each, named by variant and compiler; the baseline stays."""
    jobs = jobs_of(("scalar", "autovec", "openmp"), cc=("g++", "clang++"))
    assert {name: job.variant for name, job in jobs.items()} == {
        "scalar": "scalar",
        "autovec@g++": "/cache/1/libmoe_portable.so:autovec",
        "openmp@g++": "/cache/1/libmoe_portable.so:openmp",
        "autovec@clang++": "/cache/2/libmoe_portable.so:autovec",
        "openmp@clang++": "/cache/2/libmoe_portable.so:openmp",
    }
    assert jobs["autovec@g++"].threads == 1
    assert jobs["openmp@g++"].threads is None


def test_flags_are_compared_too(asked):
    """Every compiler with every set of flags, each a build of its own."""
    jobs = jobs_of(("autovec",), cflags=("-O2 -funroll-loops", "-O1"))
    assert list(jobs) == ["autovec@g++ -O2 -funroll-loops", "autovec@g++ -O1"]
    assert [chosen.flags for _, chosen in asked] == [("-O2", "-funroll-loops"), ("-O1",)]


def test_variants_that_nothing_compiles_are_left_out(asked):
    """Numba and libraries are not of these sources."""
    jobs = jobs_of(("scalar", "autovec", "numba-parallel", "./mine.so"), cc=("g++",))
    assert list(jobs) == ["scalar", "autovec@g++"]


def test_not_one_variant_to_compile(asked):
    """A usage error that names one."""
    with pytest.raises(UsageError, match="--variant autovec"):
        jobs_of(("scalar", "numba-parallel"), cc=("g++",))


def test_figures_take_the_names_of_the_report(asked):
    """Paths of the cache appear neither as variants nor in notes."""
    jobs = jobs_of(("scalar", "autovec"), cc=("g++",))
    library = jobs["autovec@g++"].variant
    measured = Measurement(
        timings=(VariantTiming(variant="scalar", status="ok"),
                 VariantTiming(variant=library, status="ok")),
        processes=1, interrupted=False, checked_tokens=1, notes=(f"wide: {library}",),
        elapsed_s=1.0,
    )  # fmt: skip
    found = toolchains.renamed(measured, jobs)
    assert [timing.variant for timing in found.timings] == ["scalar", "autovec@g++"]
    assert found.notes == ("wide: autovec@g++",)


def test_a_compiler_that_is_not_there():
    """The error names the option."""
    args = argparse.Namespace(cc=["no-such-compiler"], cflags=[])
    with pytest.raises(NoCompilerError, match="--cc no-such-compiler: no such program") as caught:
        toolchains.toolchains(args)
    assert caught.value.exit_code == 3


@pytest.mark.parametrize(
    ("named", "meant"),
    [("gcc", "g++"), ("clang-19", "clang++-19"), ("x86_64-linux-gnu-gcc-12", None), ("cc", "c++")],
)
def test_c_compilers_stand_for_those_of_cxx(monkeypatch, tmp_path, named, meant):
    """They would compile and then not link; the report names the one that compiled."""
    monkeypatch.setenv("PATH", str(tmp_path))
    for name in filter(None, (named, meant)):
        (tmp_path / name).write_text("#!/bin/sh\necho compiler 7\n")
        (tmp_path / name).chmod(0o755)
    args = argparse.Namespace(cc=[named], cflags=["-O2"])
    if meant is None:
        with pytest.raises(
            NoCompilerError, match=r"compiler x86_64-linux-gnu-g\+\+-12 is not there"
        ):
            toolchains.toolchains(args)
        return
    (found,) = toolchains.toolchains(args)
    assert (found.compiler.argv, found.label) == ((meant,), f"{meant} -O2")


def test_flags_that_cannot_be_split(asked):
    """An open quotation mark."""
    with pytest.raises(UsageError, match="--cflags"):
        jobs_of(("autovec",), cflags=("-DX='",))


def test_flags_make_another_build():
    """The cache tells builds with other flags apart, and keeps the key of those without."""
    keys = {
        kernel_build._key("release", Compiler(("c",), "1", False, flags), None)
        for flags in ((), ("-O1",), ("-O2",))
    }
    assert len(keys) == 3


def test_several_words_name_a_compiler(monkeypatch, tmp_path):
    """A compiler inside another program, such as ccache."""
    program = tmp_path / "wrapper"
    program.write_text("#!/bin/sh\necho compiler 7\n")
    program.chmod(0o755)
    found = compiler.named_compiler(f"{program} g++", "--cc")
    assert (found.argv, found.version) == ((str(program), "g++"), "compiler 7")
