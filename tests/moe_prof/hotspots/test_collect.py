"""Samples of the loop are told from those around it."""

from __future__ import annotations

from moe_prof.collectors.perf_script import ScriptFrame, ScriptSample
from moe_prof.hotspots.collect import classified, in_loop
from tests.moe_prof.hotspots.stack_making import profile, stack

LOOP = "bench::(anonymous namespace)::time_forwards"


def sample(time_s, *names, comm="moe_bench", tid=1):
    """A sample with frames of those names, innermost first."""
    frames = tuple(ScriptFrame(name, 1, "/b", 16) for name in names)
    return ScriptSample("cpu-clock", comm, 1, tid, 0, time_s, 1, frames, 1)


def test_samples_around_the_loop_are_left_out():
    """Workers that wait while perf is switched on are not in the loop."""
    notes = []
    samples = [
        sample(1.0, "wait", tid=2), sample(2.0, "gemm", LOOP), sample(2.5, "wait", tid=2),
        sample(3.0, "gemm", LOOP), sample(4.0, "wait", tid=2),
    ]  # fmt: skip
    assert [s.time_s for s in in_loop(samples, notes)] == [2.0, 2.5, 3.0]
    assert notes == ["2 samples before and after the loop are left out"]


def test_without_stacks_all_samples_count():
    """Nothing tells them apart then."""
    notes = []
    assert len(in_loop([sample(1.0, "gemm"), sample(2.0, "wait")], notes)) == 2
    assert notes == []


def test_stacks_that_rarely_reach_the_loop():
    """The loop's own few samples do not stand for the times of its begin and end."""
    samples = [sample(1.0, "gemm"), sample(2.0, "gemm"), sample(3.0, LOOP), sample(4.0, "gemm")]
    assert len(in_loop(samples, [])) == 4


def test_the_recording_shell_is_no_workload():
    """The shell that writes the status down is left out, unless there is nothing else."""
    assert len(in_loop([sample(1.0, "f"), sample(1.0, "read", comm="sh")], [])) == 1
    assert len(in_loop([sample(1.0, "read", comm="sh")], [])) == 1


def test_waiting_has_no_phase():
    """Stacks are marked; a runtime without symbols gets a remark."""
    found = classified(
        profile(stack("moe_f32_combine__avx2@b"), stack("main@b", "[unknown]@libgomp.so.1"))
    )
    assert [(s.phase, s.waiting) for s in found.stacks] == [("combine", False), ("", True)]
    assert found.notes == (
        "the runtime libgomp.so.1 has no symbols here: all of its own time counts as waiting",
    )
