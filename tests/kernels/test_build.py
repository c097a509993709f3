"""Building on first use: the cache, its errors, foreign binaries."""

import json
import os
import shutil
import stat
import subprocess
import sys
import time

import psutil
import pytest

from moe_prof.errors import BuildError, UsageError
from moe_prof.kernels import build as kernel_build
from moe_prof.kernels import compiler, trial
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
    """After a failure the cache holds the log, the lock and the mark only."""
    monkeypatch.setenv("CXX", str(fake_compiler(tmp_path, "exit 1")))
    monkeypatch.setenv("MOE_PROF_CACHE", str(tmp_path / "cache"))
    with pytest.raises(BuildError):
        kernel_build.build()
    assert sorted(path.suffix for path in (tmp_path / "cache").iterdir()) == [
        ".lock", ".log", ".used",
    ]  # fmt: skip


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
    with pytest.raises(BuildError, match=r"apt install g\+\+.*pip install -e '\.\[compiler\]'"):
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
    monkeypatch.setattr(compiler, "ask_version", lambda argv: argv)
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
    assert "SIGILL" in trial._probe(driver)


def test_probe_reports_a_drivers_own_words(tmp_path):
    """A driver that fails otherwise is quoted."""
    driver = tmp_path / "driver"
    driver.write_text("#!/bin/sh\necho not today >&2\nexit 2\n")
    driver.chmod(0o755)
    assert trial._probe(driver) == "its driver failed with exit code 2: not today"


def test_probe_accepts_a_good_driver():
    """A driver of the finished build passes."""
    built = kernel_build.build()
    assert trial._probe(built.driver(built.isas[0])) is None


def test_foreign_cache_is_announced_and_not_used(tmp_path):
    """A cached build of another architecture is named, and built again."""
    riscv = b"\x7fELF\x02\x01\x01" + bytes(9) + (3).to_bytes(2, "little")
    riscv += (243).to_bytes(2, "little")
    names = ("libmoe_support.so", "moe_bench", "libmoe_portable.so", "moe_bench-portable")
    for name in names:
        (tmp_path / name).write_bytes(riscv)
    manifest = {
        "schema": 3, "kind": "release", "isas": ["portable"], "unusable": {}, "compiler": "c++",
        "openmp": True, "target": "", "digests": {},
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


@pytest.fixture
def copied(tmp_path):
    """A copy of the finished build, to be damaged."""
    return shutil.copytree(kernel_build.build().folder, tmp_path / "copy")


def test_a_whole_copy_is_a_build(copied):
    """What the next tests damage would be used."""
    assert kernel_build._open(copied, Progress(enabled=False)).folder == copied


@pytest.mark.parametrize("name", ["libmoe_support.so", "libmoe_portable.so", "moe_bench-portable"])
@pytest.mark.parametrize("damage", ["cut", "flip", "empty", "gone", "folder"])
def test_damaged_artifacts_are_built_again(copied, name, damage):
    """A file that is not what was built is never loaded or run."""
    path = copied / name
    content = bytearray(path.read_bytes())
    path.unlink()
    if damage == "cut":
        path.write_bytes(content[: len(content) // 2])
    elif damage == "flip":
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
    elif damage == "empty":
        path.touch()
    elif damage == "folder":
        path.mkdir()
    assert kernel_build._open(copied, Progress(enabled=False)) is None


def test_a_driver_without_its_permission_is_built_again(copied):
    """As after a copy that lost modes."""
    (copied / "moe_bench-portable").chmod(0o644)
    assert kernel_build._open(copied, Progress(enabled=False)) is None


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"null", b"{}", b'{"schema": 2}', b'{"schema": 2, "kind"', b"\xff\xfe"]
)
def test_damaged_manifest_is_no_build(copied, content):
    """Whatever stands in it."""
    (copied / "build.json").write_bytes(content)
    assert kernel_build._open(copied, Progress(enabled=False)) is None


def test_what_lies_in_the_way_of_a_build_is_removed(tmp_path):
    """A folder, a file, a link or nothing."""
    (tmp_path / "folder" / "inner").mkdir(parents=True)
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path)
    for name in ("folder", "file", "link", "nothing"):
        kernel_build._remove(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_left_overs_of_killed_builds_are_removed(monkeypatch, tmp_path):
    """They would fill the disk; the log and the lock stay."""
    monkeypatch.setattr(kernel_build, "_compile", lambda *arguments: {})
    for name in ("release-1.abc", "release-2.abc"):
        (tmp_path / name).mkdir()
    (tmp_path / "release-1.log").touch()
    kernel_build._make("release", None, tmp_path / "release-1", Progress(enabled=False), None)
    left = sorted(path.name for path in tmp_path.iterdir())
    assert left == ["release-1", "release-1.log", "release-2.abc"]


def test_interrupted_build_leaves_no_process(monkeypatch, tmp_path):
    """Not even one in a process group of its own, as ninja's compilers are."""
    mark = tmp_path / "pid"
    script = f"setsid sh -c 'echo $$ >{mark}; exec sleep 60' & wait"

    def interrupt(process):
        while not (mark.exists() and mark.read_text().strip()):
            time.sleep(0.01)
        raise KeyboardInterrupt

    monkeypatch.setattr(subprocess.Popen, "communicate", interrupt)
    with pytest.raises(KeyboardInterrupt):
        kernel_build._run(["sh", "-c", script], "", tmp_path / "log")
    assert has_ended(int(mark.read_text()))


def has_ended(pid):
    """Whether a process ends within five seconds; who reaps it is not our business."""
    for _ in range(100):
        if not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
            return True
        time.sleep(0.05)
    return False


@pytest.mark.parametrize("cxx", ['"', "'g++", "g++ \\"])
def test_cxx_with_an_open_quote_is_named(monkeypatch, cxx):
    """What a shell could not read is no command."""
    monkeypatch.setenv("CXX", cxx)
    with pytest.raises(BuildError, match=r"CXX=.*: No (closing quotation|escaped character)"):
        compiler.find_compiler()


def test_version_need_not_be_utf8(monkeypatch, tmp_path):
    """A compiler's name in another encoding is still a name."""
    path = tmp_path / "latin"
    path.write_bytes(b"#!/bin/sh\necho 'g++ \xe9dition 12'\n")
    path.chmod(0o755)
    monkeypatch.setenv("CXX", str(path))
    assert compiler.find_compiler().version == "g++ \ufffddition 12"


def test_home_of_nobody_is_named(monkeypatch):
    """A cache below the home of a user who does not exist."""
    monkeypatch.setenv("MOE_PROF_CACHE", "~no-such-user/cache")
    with pytest.raises(BuildError, match="set MOE_PROF_CACHE to a folder"):
        kernel_build.cache_root()


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
