"""Building on first use: the cache, its errors, foreign binaries."""

import json
import os
import stat
import subprocess
import sys

import pytest

from moe_prof.errors import BuildError, UsageError
from moe_prof.kernels import build as kernel_build
from moe_prof.kernels import compiler
from moe_prof.kernels.build import Build
from moe_prof.progress import Progress


def fake_compiler(folder, body):
    """A program that poses as a compiler."""
    path = folder / "fake-c++"
    path.write_text(f'#!/bin/sh\nif [ "$1" = --version ]; then echo fake 1.0; exit 0; fi\n{body}\n')
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def a_build(folder, **changes):
    """A Build without files."""
    facts = {
        "kind": "release", "folder": folder, "isas": ("avx2", "portable"),
        "unusable": {"native": "its driver died"}, "compiler": "c++ 12", "openmp": True,
    }  # fmt: skip
    return Build(**(facts | changes))


def test_second_build_is_the_first_one():
    """A finished build is found again, without a progress line."""
    first = kernel_build.build()
    said = []

    class Recorder(Progress):
        """Collects what would be shown."""

        def step(self, text, *, slow=False):
            """Keep the text."""
            said.append(text)

    assert (kernel_build.build(progress=Recorder()), said) == (first, [])


def test_every_usable_path_has_a_library_and_a_driver():
    """What a build lists as usable lies on disk."""
    built = kernel_build.build()
    paths = [built.front, built.support]
    for isa in built.isas:
        paths += [built.library(isa), built.driver(isa)]
    assert [path for path in paths if not path.is_file()] == []


def test_an_unusable_path_is_refused_with_its_reason(tmp_path):
    """Asking for a path that does not run here repeats why."""
    message = r"'native' is not usable.*its driver died.*avx2, portable"
    with pytest.raises(UsageError, match=message):
        a_build(tmp_path).library("native")


def test_unknown_kind_is_refused():
    """An unknown build kind lists the known ones."""
    with pytest.raises(UsageError, match="known builds: release, gprof, phases, portable"):
        kernel_build.build("debug")


def test_cache_folder_is_moe_prof_cache_first(monkeypatch, tmp_path):
    """MOE_PROF_CACHE is stronger than XDG_CACHE_HOME."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.setenv("MOE_PROF_CACHE", str(tmp_path / "own"))
    assert kernel_build.cache_root() == tmp_path / "own"


def test_cache_folder_follows_xdg(monkeypatch, tmp_path):
    """XDG_CACHE_HOME decides where MOE_PROF_CACHE is not set."""
    monkeypatch.delenv("MOE_PROF_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert kernel_build.cache_root() == tmp_path / "moe_prof"


def test_failing_compile_tells_the_compilers_words_and_the_log(monkeypatch, tmp_path):
    """A compiler that fails is an error with its first lines and where the log is."""
    fake = fake_compiler(tmp_path, 'echo "x.cpp:1:1: error: I am on strike" >&2; exit 1')
    monkeypatch.setenv("CXX", str(fake))
    monkeypatch.setenv("MOE_PROF_CACHE", str(tmp_path / "cache"))
    with pytest.raises(BuildError, match=r"did not build: .*\(log: .*\.log\)") as caught:
        kernel_build.build()
    log = str(caught.value).rpartition("(log: ")[2].rstrip(")")
    with open(log, encoding="utf-8") as file:
        assert "I am on strike" in file.read()


def test_failed_build_leaves_no_half_build(monkeypatch, tmp_path):
    """After a failure the cache holds the log and the lock only."""
    monkeypatch.setenv("CXX", str(fake_compiler(tmp_path, "exit 1")))
    monkeypatch.setenv("MOE_PROF_CACHE", str(tmp_path / "cache"))
    with pytest.raises(BuildError):
        kernel_build.build()
    assert sorted(path.suffix for path in (tmp_path / "cache").iterdir()) == [".lock", ".log"]


def test_first_errors_finds_the_compilers_lines():
    """Of a long output the first two errors are kept, in order."""
    output = "[1/3] c++ a.cpp\na.cpp:3:4: error: one\n note: x\nb.cpp:1:1: error: two\nerror: three"
    assert kernel_build.first_errors(output) == "a.cpp:3:4: error: one | b.cpp:1:1: error: two"


def test_first_errors_falls_back_to_the_last_lines():
    """Output without an error line is represented by its end."""
    assert kernel_build.first_errors("a\nb\n\nc\n") == "b | c"


def test_no_compiler_tells_how_to_get_one(monkeypatch, tmp_path):
    """Without any compiler the error has the install line and the PyPI alternative."""
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(compiler, "find_spec", lambda name: None)
    with pytest.raises(BuildError, match=r"apt install g\+\+.*pip install 'moe-prof\[compiler\]'"):
        compiler.find_compiler()


def test_wrong_cxx_is_named(monkeypatch):
    """A CXX that does not exist is told as such."""
    monkeypatch.setenv("CXX", "no-such-compiler -O2")
    with pytest.raises(BuildError, match="CXX=no-such-compiler -O2: no such program"):
        compiler.find_compiler()


def test_compiler_that_cannot_tell_its_version_is_refused(monkeypatch, tmp_path):
    """A broken compiler is found before anything is built."""
    path = tmp_path / "broken"
    path.write_text("#!/bin/sh\necho cannot start >&2\nexit 3\n")
    path.chmod(0o755)
    monkeypatch.setenv("CXX", str(path))
    with pytest.raises(BuildError, match=r"failed to tell its version \(exit 3\): cannot start"):
        compiler.find_compiler()


def test_ziglang_is_the_last_resort(monkeypatch, tmp_path):
    """With nothing on PATH the PyPI compiler is taken when it is installed."""
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(compiler, "find_spec", lambda name: object())
    monkeypatch.setattr(compiler, "_ask_version", lambda argv: argv)
    assert compiler.find_compiler()[1:] == ("-m", "ziglang", "c++")


@pytest.mark.skipif(os.geteuid() == 0, reason="root can write everywhere")
def test_unwritable_cache_is_named(monkeypatch, tmp_path):
    """A cache folder that cannot be made is an error with the remedy."""
    tmp_path.chmod(0o500)
    monkeypatch.setenv("MOE_PROF_CACHE", str(tmp_path / "cache"))
    with pytest.raises(BuildError, match="set MOE_PROF_CACHE"):
        kernel_build.build()


def test_cache_that_is_a_file_is_named(monkeypatch, tmp_path):
    """A cache path that is a file is an error with the remedy."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("MOE_PROF_CACHE", str(tmp_path / "file"))
    with pytest.raises(BuildError, match="set MOE_PROF_CACHE"):
        kernel_build.build()


def test_probe_reports_a_forbidden_instruction(tmp_path):
    """A driver that dies of SIGILL makes its path unusable, with the reason."""
    driver = tmp_path / "driver"
    driver.write_text("#!/bin/sh\nkill -ILL $$\n")
    driver.chmod(0o755)
    assert "SIGILL" in kernel_build._probe(driver)


def test_probe_reports_a_drivers_own_words(tmp_path):
    """A driver that fails otherwise is quoted."""
    driver = tmp_path / "driver"
    driver.write_text("#!/bin/sh\necho not today >&2\nexit 2\n")
    driver.chmod(0o755)
    assert kernel_build._probe(driver) == "its driver failed with exit code 2: not today"


def test_probe_accepts_a_good_driver():
    """A driver of the finished build passes."""
    built = kernel_build.build()
    assert kernel_build._probe(built.driver(built.isas[0])) is None


def test_foreign_cache_is_announced_and_not_used(tmp_path):
    """A cached build of another architecture is named, and built again."""
    riscv = b"\x7fELF\x02\x01\x01" + bytes(9) + (3).to_bytes(2, "little")
    riscv += (243).to_bytes(2, "little")
    names = ("libmoe_support.so", "moe_bench", "libmoe_portable.so", "moe_bench-portable")
    for name in names:
        (tmp_path / name).write_bytes(riscv)
    manifest = {
        "schema": 1, "kind": "release", "isas": ["portable"], "unusable": {}, "compiler": "c++",
        "openmp": True,
    }  # fmt: skip
    (tmp_path / "build.json").write_text(json.dumps(manifest))
    said = []

    class Recorder(Progress):
        """Collects what would be shown."""

        def step(self, text, *, slow=False):
            """Keep the text."""
            said.append(text)

    assert kernel_build._open(tmp_path, Recorder()) is None
    assert "is built for riscv64, this machine is" in said[0]


def test_unfinished_folder_is_no_build(tmp_path):
    """A folder without a manifest is not taken for a build."""
    assert kernel_build._open(tmp_path, Progress(enabled=False)) is None


@pytest.mark.slow
def test_processes_that_start_together_build_once(tmp_path):
    """Two processes with an empty cache end with the same build, made by one of them."""
    code = (
        "from moe_prof.kernels.build import build; from moe_prof.progress import Progress; "
        "print(build('portable', Progress()).folder)"
    )
    env = os.environ | {"MOE_PROF_CACHE": str(tmp_path)}
    peers = [
        subprocess.Popen(
            [sys.executable, "-c", code], env=env, text=True, cwd=kernel_build.SOURCE_DIR.parent,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
        for _ in range(2)
    ]  # fmt: skip
    said = [peer.communicate() for peer in peers]
    assert said[0][0] == said[1][0] != ""
    assert sum("building the C++ kernels" in errors for _, errors in said) == 1
