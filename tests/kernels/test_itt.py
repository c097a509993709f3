"""The driver under VTune's control, played by a library that records the calls."""

import os

import pytest

from tests.kernels.test_moe_bench import HERE, SHAPE, compile_cpp, run

VARIABLE = "INTEL_LIBITTNOTIFY64"


def collector(folder, *flags):
    """A collector library."""
    return compile_cpp(
        folder / "collector.so", os.path.join(HERE, "itt_collector.c"),
        flags=("-shared", "-fPIC", "-x", "c", "-std=gnu11", *flags),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("flags", "calls"),
    [((), ["resume", "pause"]), (("-DWITH_INIT",), ["init", "resume", "pause"])],
    ids=["plain", "init"],
)
def test_collection_is_resumed_and_paused_once(tmp_path, flags, calls):
    """Both kinds of collectors are told when the timed loop begins and ends."""
    env = {VARIABLE: str(collector(tmp_path, *flags)), "ITT_LOG": str(tmp_path / "log")}
    done = run(*SHAPE, "2", "--benchmark", env=env)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "log").read_text().split() == calls


def test_nothing_is_loaded_without_vtune(tmp_path):
    """Without the variable, or with an empty one, nothing happens."""
    done = run(*SHAPE, "2", "--benchmark", env={VARIABLE: "", "ITT_LOG": str(tmp_path / "log")})
    assert (done.returncode, done.stderr) == (0, "")
    assert not (tmp_path / "log").exists()


def test_library_that_is_not_there_costs_a_line_only(tmp_path):
    """A variable left over in the environment spoils no run."""
    done = run(*SHAPE, "2", "--benchmark", env={VARIABLE: str(tmp_path / "none.so")})
    assert done.returncode == 0
    assert done.stderr.startswith(f"moe_bench: not under VTune's control: {VARIABLE}: cannot load")
    assert len(done.stderr.splitlines()) == 1


def test_library_of_another_kind(tmp_path):
    """A library without the calls is named."""
    other = compile_cpp(
        tmp_path / "other.so", os.path.join(HERE, "malloc_counter.c"),
        flags=("-shared", "-fPIC", "-x", "c", "-std=gnu11"),
    )  # fmt: skip
    done = run(*SHAPE, "2", "--benchmark", env={VARIABLE: str(other)})
    assert done.returncode == 0
    assert f"{other} has no __itt_pause" in done.stderr
