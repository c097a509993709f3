"""Measuring through real worker processes, with plans that misbehave."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest

from moe_prof.errors import MoeProfError, UsageError, WorkloadError
from moe_prof.measure import measure, measure_phases, parent, scratch
from moe_prof.measure.child import ending_text
from moe_prof.measure.results import DEFAULT_FACTORY
from moe_prof.progress import Progress
from tests.moe_prof.measure.interrupting import interrupt_at_sample

HERE = Path(__file__).parent


def children():
    """Worker processes of this test process."""
    return psutil.Process().children(recursive=True)


def test_every_variant_is_timed(request_for):
    """Two processes, four rounds, the invented times within their noise."""
    measurement = measure(request_for("scalar", "fast"))
    scalar, fast = measurement.timings
    assert (scalar.status, fast.status) == ("ok", "ok")
    assert sorted(scalar.samples_s) == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert all(abs(value / 4e-3 - 1) < 0.06 for value in scalar.samples_s.values())
    assert all(abs(value / 1e-3 - 1) < 0.06 for value in fast.samples_s.values())
    assert measurement.processes == 2


def test_loops_reach_the_shortest_sample(request_for):
    """Doubling from one: 1 ms forwards need 32 loops for 20 ms."""
    (timing,) = measure(request_for("fast", repeat=1, min_sample_s=0.02)).timings
    assert timing.loops == 32
    assert [loops for loops, _ in timing.warmups_s[0]] == [1, 2, 4, 8, 16, 32]


def test_processes_follow_until_there_are_enough_samples(request_for):
    """Asked after those that are due, with the samples of all variants."""
    asked = []

    def enough(samples):
        asked.append(
            {name: len({process for process, _ in found}) for name, found in samples.items()}
        )
        return len(asked) == 3  # fmt: skip

    changes = {"repeat": None, "processes": 1, "enough": enough, "min_sample_s": 0.001}
    measurement = measure(request_for("good", "fast", **changes))
    assert asked == [{"good": count, "fast": count} for count in (1, 2, 3)]
    assert measurement.processes == 3


def test_processes_end_at_the_most(request_for, monkeypatch):
    """However long the answer is no."""
    monkeypatch.setattr(parent, "MOST_PROCESSES", 2)
    changes = {"repeat": None, "processes": 1, "enough": lambda _: False, "min_sample_s": 0.001}
    assert measure(request_for("good", **changes)).processes == 2


def test_no_process_follows_that_does_not_fit_the_time(request_for):
    """As long as the last one took is left at least."""
    changes = {"repeat": None, "processes": 1, "enough": lambda _: False, "min_sample_s": 0.001}
    assert measure(request_for("good", budget_s=0.01, **changes)).processes == 1


def test_a_forced_number_of_rounds_is_not_extended(request_for):
    """``--repeat`` is what the user wants."""
    assert measure(request_for("good", enough=lambda _: False)).processes == 2


def test_every_round_prepares_the_plans_anew(request_for, monkeypatch, tmp_path):
    """At other addresses; a plan whose forward is long keeps its memory."""
    monkeypatch.setenv("FAKE_PLANS_PREPARED", str(tmp_path / "prepared"))
    changes = {"processes": 1, "repeat": 3, "min_sample_s": 0.02, "threads": 1}
    measure(request_for("good", "slow", **changes))
    prepared = (tmp_path / "prepared").read_text().split()
    assert (prepared.count("good"), prepared.count("slow")) == (1 + 3, 1)


def test_teams_keep_their_threads(request_for, monkeypatch, tmp_path):
    """New ones may share a CPU for longer than a sample takes."""
    monkeypatch.setenv("FAKE_PLANS_PREPARED", str(tmp_path / "prepared"))
    measure(request_for("good", processes=1, repeat=3, threads=2))
    assert (tmp_path / "prepared").read_text().split() == ["good"]


def test_a_plan_that_cannot_be_prepared_again_has_failed(request_for, monkeypatch, tmp_path):
    """The others keep their rounds."""
    monkeypatch.setenv("FAKE_PLANS_PREPARED", str(tmp_path / "prepared"))
    once, good = measure(request_for("once", "good", processes=1, repeat=3, threads=1)).timings
    assert (once.status, good.status) == ("failed", "ok")
    assert "the plan refuses" in once.reason
    assert len(good.samples_s) == 3


def test_the_plan_says_what_ran(request_for):
    """Identity comes from the plan, not from the request."""
    (timing,) = measure(request_for("good", repeat=1)).timings
    assert (timing.isa, timing.threads, timing.info["variant"]) == ("fake", 2, "good")


def test_all_tokens_are_checked(request_for):
    """A small layer is compared in full."""
    measurement = measure(request_for("good", repeat=1))
    assert measurement.checked_tokens == 3
    assert measurement.timings[0].rel_rmse < 1e-6


@pytest.mark.parametrize(("measuring", "kind"), [(measure, "portable"), (measure_phases, "phases")])
def test_the_worker_gets_the_build_asked_for(request_for, measuring, kind, monkeypatch, tmp_path):
    """The timed one for times, that with timers for phases."""
    monkeypatch.setenv("FAKE_PLANS_BUILD", str(tmp_path / "build"))
    measuring(request_for("good", processes=1, repeat=1, build="portable"))
    assert (tmp_path / "build").read_text() == kind


@pytest.mark.parametrize("measuring", [measure, measure_phases])
def test_use_by_other_programs_is_watched(request_for, measuring):
    """While samples are taken, and while the phases are: waiting is measured there."""
    made = measuring(request_for("slow", processes=1, repeat=1))
    crowd = made.crowd if measuring is measure else made[0].crowd
    assert crowd.cpus == len(os.sched_getaffinity(0))
    assert crowd.others >= 0


@pytest.mark.parametrize("name", ["wrong", "nan"])
def test_wrong_result_is_never_timed(request_for, name):
    """The variant is wrong, has no sample, and the other one is measured."""
    wrong, good = measure(request_for(name, "good")).timings
    assert (wrong.status, wrong.samples_s, wrong.trusted) == ("wrong", {}, False)
    assert good.trusted


def test_result_that_turns_wrong_is_found(request_for):
    """A kernel that is right once and wrong after the timed loop is wrong."""
    (timing,) = measure(request_for("drifts")).timings
    assert (timing.status, timing.trusted) == ("wrong", False)


@pytest.mark.parametrize("step", ["prepare", "forward", "time", "close"])
def test_crash_is_attributed(request_for, step):
    """A signal ends the worker; the variant at hand is blamed and the rest goes on."""
    crashed, good = measure(request_for(f"crash-at-{step}", "good")).timings
    assert crashed.status == "crashed"
    assert "killed by SIGSEGV" in crashed.reason
    assert good.trusted


def test_crash_loses_nothing_measured(request_for):
    """Samples of the other variants taken before the crash are kept: a crash at the very end."""
    _, good = measure(request_for("crash-at-close", "good", processes=1, repeat=3)).timings
    assert len(good.samples_s) >= 3


def test_uncaught_exception_is_attributed(request_for):
    """The interpreter's last words are quoted."""
    stopped, good = measure(request_for("exit-at-forward", "good")).timings
    assert stopped.status == "crashed"
    assert stopped.reason == (
        "its process ended during verify: exit status 1; it last said: out of luck"
    )
    assert good.trusted


def test_a_plan_that_writes_into_foreign_pipes(request_for):
    """What it writes there is taken for no event; the others go on."""
    crashed, good = measure(request_for("scribble-at-forward", "good")).timings
    assert crashed.status == "crashed"
    assert crashed.reason == "during verify it wrote into a pipe that is not its own: b'hello'"
    assert good.trusted


def test_no_temporary_folder_is_one_clear_error(request_for, monkeypatch):
    """Where there is none, or it is full."""

    def refuse(**kwargs):
        raise FileNotFoundError(2, "No usable temporary directory found")

    monkeypatch.setattr(scratch.tempfile, "TemporaryDirectory", refuse)
    with pytest.raises(MoeProfError, match=r"No usable temporary directory found; .* set TMPDIR"):
        measure(request_for("good"))


def test_logs_that_cannot_be_kept_cost_no_result(request_for, tmp_path):
    """A note says so."""
    (tmp_path / "file").write_text("in the way")
    found = measure(request_for("exit-at-forward", "good"), folder=tmp_path / "file" / "raw")
    assert found.timings[1].trusted
    assert "what the workers printed is not kept: Not a directory" in found.notes


def test_hang_is_ended(request_for):
    """A variant that never answers is killed after its deadline."""
    started_s = time.monotonic()
    hung, good = measure(request_for("hang-at-time", "good", hang_s=2)).timings
    assert hung.status == "hung"
    assert good.trusted
    assert time.monotonic() - started_s < 30


@pytest.mark.parametrize(("name", "status"), [("raise", "failed"), ("lack", "unavailable")])
@pytest.mark.parametrize("step", ["prepare", "time"])
def test_typed_errors_are_reported(request_for, name, status, step):
    """An error of the plan is the variant's own; no other process is needed."""
    failed, good = measure(request_for(f"{name}-at-{step}", "good", repeat=1)).timings
    assert failed.status == status
    assert failed.reason in ("the plan refuses", "this machine lacks it")
    assert list(good.samples_s) == [(0, 0)]


def test_unknown_factory_is_a_usage_error(request_for):
    """The worker's error arrives with its class and message."""
    with pytest.raises(UsageError, match="no_such_module"):
        measure(request_for("good", plan_factory="no_such_module:factory"))


def test_mistake_in_a_factory_is_attributed(request_for):
    """Any exception is the variant's; the last line of its traceback is the reason."""
    (timing,) = measure(request_for("good", plan_factory="fake_plans:stumbles")).timings
    assert timing.status == "crashed"
    assert timing.reason.endswith("ZeroDivisionError: a mistake in the factory")


def test_worker_that_cannot_start_is_an_error(request_for, monkeypatch, tmp_path):
    """Nobody is blamed for a broken interpreter."""
    fake = tmp_path / "python"
    fake.write_text("#!/bin/sh\necho no interpreter here\nexit 9\n")
    fake.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(fake))
    with pytest.raises(WorkloadError, match=r"exit status 9.*no interpreter here"):
        measure(request_for("good"))


def test_time_limit_ends_a_slow_variant(request_for):
    """A limit shorter than one slow sample: the fast one is measured, the slow one is named."""
    started_s = time.monotonic()
    measurement = measure(request_for("slow", "good", repeat=None, max_time_s=2.0))
    assert time.monotonic() - started_s < 4.0
    slow, good = measurement.timings
    assert good.trusted
    named = slow.status == "no_time" or "while calibrating" in slow.note
    assert named or len(slow.samples_s) < len(good.samples_s)


def test_compiling_once_is_not_counted_as_setup(request_for, monkeypatch, tmp_path):
    """A Python variant that compiles in the first process leaves time for the other processes."""
    monkeypatch.setenv("FAKE_PLANS", "numba-parallel=compiles")
    monkeypatch.setenv("FAKE_PLANS_MARK", str(tmp_path / "compiled"))
    monkeypatch.setattr(parent, "PYTHON_LOAD_S", 0.0)
    changes = {
        "repeat": None, "processes": 3, "plan_factory": "fake_plans:scripted", "budget_s": 3.0,
    }  # fmt: skip
    assert measure(request_for("numba-parallel", **changes)).processes == 3


def test_interval_comes_before_the_wished_time(request_for):
    """Without a limit, six samples are taken even where the wish would allow two."""
    (slow,) = measure(request_for("slow", repeat=None, processes=1, budget_s=3.5)).timings
    assert len(slow.samples_s) == 6


def test_setup_has_its_share_of_a_limit(request_for):
    """Five variants of which each takes a fifth of the limit to check: the first is measured."""
    names = [f"sluggish{index}" for index in range(5)]
    first, *others = reversed(measure(request_for(*names, repeat=None, max_time_s=7.5)).timings)
    assert first.trusted
    assert {timing.status for timing in others} >= {"no_time"}
    assert others[-1].reason == "setting up the others left no time for it"


def test_limit_reached_while_preparing(request_for):
    """What hangs until the limit is named; the measurement ends in time, with a result."""
    started_s = time.monotonic()
    (timing,) = measure(request_for("hang-at-prepare", max_time_s=1.5, hang_s=None)).timings
    assert time.monotonic() - started_s < 6.0
    assert timing.status == "no_time"


def test_interrupt_keeps_what_was_measured(request_for, monkeypatch):
    """Ctrl-C during a long run: partial result, no process left."""
    interrupt_at_sample(monkeypatch, "good")
    measurement = measure(request_for("slow", "good", repeat=200, processes=1))
    assert measurement.interrupted
    assert 0 < len(measurement.timing("good").samples_s) < 200
    assert children() == []


def test_interrupt_before_any_sample(request_for):
    """Ctrl-C during preparation says so for each variant."""
    timer = threading.Timer(1.5, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    (timing,) = measure(request_for("hang-at-prepare")).timings
    timer.join()
    assert timing.status == "interrupted"
    assert children() == []


def test_killed_parent_leaves_no_orphan(request_for, tmp_path):
    """Even SIGKILL of the parent ends the worker."""
    script = tmp_path / "parent.py"
    script.write_text(
        "from moe_prof.measure import Job, Request, measure\n"
        "from moe_prof.scenario import Scenario\n"
        "measure(Request(scenario=Scenario(3, 16, 8, 4, 2), jobs=(Job('hang-at-prepare'),),\n"
        "                threads=1, plan_factory='fake_plans:factory'))\n"
    )
    root = HERE.parent.parent.parent
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE), str(root)])}
    with subprocess.Popen([sys.executable, str(script)], env=environment) as doomed:
        workers = []
        deadline_s = time.monotonic() + 30
        while not workers and time.monotonic() < deadline_s:
            time.sleep(0.2)
            workers = psutil.Process(doomed.pid).children()
        time.sleep(1.0)  # let it ask for its death signal
        doomed.kill()
    _, alive = psutil.wait_procs(workers, timeout=10)
    assert workers
    assert alive == []


def test_progress_is_told(request_for, capsys, monkeypatch):
    """Each step has a line; samples do not flood a log."""
    monkeypatch.setattr("moe_prof.progress.QUIET_S", 0.0)
    measure(request_for("good", repeat=8, processes=1), Progress())
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "3,16,8,4,2: computing the oracle's answer",
        "3,16,8,4,2: preparing and checking good",
        "3,16,8,4,2: timing, interleaved (process 1)",
    ]


def test_phases_are_per_forward(request_for):
    """Timers are divided by the forwards behind them."""
    (times,) = measure_phases(request_for("good"))
    share = 1 / times.forwards  # the fake's timers say one second in all
    assert 10 <= times.forwards <= 11  # 20 ms of 2 ms forwards with 1 % noise
    assert [thread.busy_s for thread in times.threads] == [share, share]
    assert times.threads[0].phases_s["gate_up"] == share


def test_phases_are_of_the_least_disturbed_window(request_for):
    """Waiting caused by other programs in one window is not reported."""
    (times,) = measure_phases(request_for("disturbed"))
    assert [thread.wait_s * times.forwards for thread in times.threads] == pytest.approx(
        [1 / 3] * 2
    )


def test_variants_without_timers_are_not_prepared(request_for, monkeypatch):
    """What numba compiles has no phase timers: no process is started to find that out."""
    monkeypatch.setattr(parent, "Child", None)
    (times,) = measure_phases(request_for("numba-parallel", plan_factory=DEFAULT_FACTORY))
    assert (times.threads, times.reason) == (
        (), "numba-parallel: phase timers exist in C++ variants only",
    )  # fmt: skip


def test_missing_phases_have_a_reason(request_for):
    """A plan without timers, or one that crashes, costs only its own."""
    lacking, crashed, good = measure_phases(
        request_for("lack-at-timers", "crash-at-timers", "good")
    )
    assert (lacking.threads, lacking.reason) == ((), "this machine lacks it")
    assert "SIGSEGV" in crashed.reason
    assert good.threads != ()


@pytest.mark.parametrize(
    ("code", "text"),
    [(3, "exit status 3"), (-11, "killed by SIGSEGV"), (-63, "killed by signal 63")],
)
def test_ending_text(code, text):
    """Exit codes in words."""
    assert ending_text(code) == text
