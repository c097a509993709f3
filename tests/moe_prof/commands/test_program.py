"""``topdown -- COMMAND`` and ``counters -- COMMAND``: the steps played, mistakes real."""

import dataclasses
import sys
import time
from pathlib import Path

import pytest

from benchmarks import causes
from moe_prof import session as sessions
from moe_prof.analysis.program_demands import Machine
from moe_prof.commands import program as command
from moe_prof.errors import UnavailableError
from moe_prof.program.counting import Counted
from moe_prof.program.sampling import Sampled
from moe_prof.program.speeds import LoopSpeed
from moe_prof.program.watch import ThreadTime, Watched
from moe_prof.topdown.counted import NO_COUNTERS
from tests.moe_prof.commands.running import main

SEEN = Watched(
    exit_code=0, wall_s=1.0, user_s=0.98, sys_s=0.01, minor_faults=60, major_faults=0, voluntary=1,
    involuntary=3, max_rss_bytes=2 << 20, threads=(ThreadTime(0.99, 0.0, True),),
    single_share=1.0, most_threads=1, cpus=2,
)  # fmt: skip
BEST = Machine(clock_hz=4e9, width=6, latency_s=(4e-9, 25e-9, 1e-7), bandwidth=(1e11, 8e10, 3e10))


@pytest.fixture
def played(monkeypatch, tmp_path):
    """A run in which every measuring step answers at once."""
    monkeypatch.setenv("MOE_PROF_SESSIONS", str(tmp_path / "sessions"))
    answers = {"watch": SEEN, "sample": Sampled(900, 0.0, {1: 900}, 1.0), "count": Counted()}
    monkeypatch.setattr(command.watch, "watch", lambda *_, **__: answers["watch"])
    monkeypatch.setattr(command.sampling, "sample", lambda *_, **__: answers["sample"])
    monkeypatch.setattr(command.counting, "count", lambda *_, **__: answers["count"])
    monkeypatch.setattr(command.counted, "find_counters", lambda _: NO_COUNTERS)
    monkeypatch.setattr(command.measured_ceilings, "measure", lambda *_, **__: None)
    monkeypatch.setattr(command, "machine_of", lambda *_: BEST)
    return answers


def verdict(ran):
    """The cause that one run names."""
    return next(row["source"] for row in ran.document["rows"] if row["metric"] == "verdict")


def run(*words):
    """``topdown`` of a program that is there."""
    return main("topdown", *words, "--", sys.executable, "-c", "pass")


def test_rows_of_a_program(played):
    """Figures and one verdict under the program's name, in the schema of all rows."""
    played["watch"] = Watched(**{**_fields(SEEN), "user_s": 0.2, "sys_s": 0.8})
    ran = run("--format", "json")
    assert (ran.code, verdict(ran)) == (0, "syscall_bound")
    rows = {row["metric"]: row for row in ran.document["rows"]}
    assert rows["time_user"]["value"] == 0.2
    assert rows["verdict"]["variant"] == Path(sys.executable).name
    assert rows["instructions"]["provenance"] == "unavailable"


def test_simulated_misses_name_a_cause(played):
    """Counts of the simulation reach the verdict."""
    played["count"] = Counted(
        instructions=1e8, pointer_share=0.9, l1_misses=2e8, l2_misses=0.0, l3_misses=0.0,
        mispredictions=0.0,
    )  # fmt: skip
    assert verdict(run("--format", "json")) == "l2_bound"


def test_samples_name_a_cause(played):
    """A loop that polls is enough."""
    played["sample"] = Sampled(900, 0.6, {1: 360}, 1.0)
    played["watch"] = Watched(
        **{**_fields(SEEN), "most_threads": 2, "single_share": 0.0, "user_s": 1.9,
           "threads": (ThreadTime(0.95, 0.0, True), ThreadTime(0.95, 0.0, False))}
    )  # fmt: skip
    assert verdict(run("--format", "json")) == "spin_bound"


def test_samples_stand_where_no_time_is_left_to_simulate(played, monkeypatch):
    """The speeds of loops give what the simulation would have."""
    speed = LoopSpeed("/p", 0x10, 1e8, 0.9, ("mov (%rax),%rax", "jne 10"), 1.0, 64 << 20)
    played["sample"] = Sampled(900, 0.0, {1: 900}, 1.0, speeds=(speed,), pointers=0.9)
    seen = []

    def out_of_time(*_, **__):
        time.sleep(max(0.0, 1.0 - (time.monotonic() - start_s)))

    def counted(speeds, *_, **__):
        seen.append(speeds)
        return Counted(instructions=1e8, loops=("one",), l1_misses=2e8, pointer_share=0.9)

    monkeypatch.setattr(command.measured_ceilings, "measure", out_of_time)
    monkeypatch.setattr(command.sampled_loops, "counted", counted)
    monkeypatch.setattr(command, "with_counts", lambda evidence, found: dataclasses.replace(
        evidence, instructions=found.instructions, l1_misses=found.l1_misses, l2_misses=0.0,
        l3_misses=0.0,
    ))  # fmt: skip
    start_s = time.monotonic()
    assert verdict(run("--max-time", "1s", "--format", "json")) == "l2_bound"
    assert seen == [(speed,)]


def test_unknown_says_what_is_missing(played, monkeypatch):
    """Without samples and simulation there is no name."""

    def refuse(*_, **__):
        raise UnavailableError("callgrind: valgrind is not installed; apt install valgrind")

    monkeypatch.setattr(command.counting, "count", refuse)
    monkeypatch.setattr(command.sampling, "sample", refuse)
    ran = run()
    assert "could not be told" in ran.out
    assert "apt install valgrind" in " ".join(ran.out.split())
    assert played


def test_scaled_counts_are_no_simulated_ones(played):
    """What a simulation saw in part is modelled, and says so; the rest of it is missing."""
    played["count"] = Counted(instructions=5e9, cut_off=True, l1_misses=7.0)
    rows = {row["metric"]: row for row in run("--format", "json").document["rows"]}
    for name in ("instructions", "l1d_misses"):
        assert rows[name]["provenance"] == "modelled"
        assert "scaled from the part that was simulated" in rows[name]["source"]
    assert "more time by --max-time" in rows["l2_misses"]["source"]
    played["count"] = Counted(instructions=5e9, whole_misses=True, l1_misses=7.0)
    rows = {row["metric"]: row for row in run("--format", "json").document["rows"]}
    assert rows["instructions"]["provenance"] == rows["l1d_misses"]["provenance"] == "simulated"


def test_what_needed_no_simulation_was_not_cut_off(played):
    """The system's share is the answer; more time would bring no counts."""
    played["watch"] = Watched(**{**_fields(SEEN), "user_s": 0.2, "sys_s": 0.8})
    rows = {row["metric"]: row for row in run("--format", "json").document["rows"]}
    for name in ("instructions", "l1d_misses"):
        assert rows[name]["source"].endswith("not needed for the verdict, or not to be had")


def test_a_simulation_that_was_cut_off_is_the_reason(played):
    """Not the tools: more time helps."""
    played["count"] = Counted(cut_off=True)
    text = " ".join(run().out.split())
    assert "its simulation was cut off" in text
    assert "Next: give it more time by --max-time" in text


def test_an_empty_name(tmp_path):
    """It is no folder."""
    ran = main("topdown", "--", "")
    assert (ran.code, ran.complaints) == (
        2, ["moe-prof: the program's name after -- is empty; give its path"],
    )  # fmt: skip


def test_memory_that_nobody_saw_is_missing(played):
    """A program that ends at once has no peak; it is not 0."""
    played["watch"] = Watched(**{**_fields(SEEN), "max_rss_bytes": None})
    rows = {row["metric"]: row for row in run("--format", "json").document["rows"]}
    assert (rows["max_rss"]["value"], rows["max_rss"]["provenance"]) == (None, "unavailable")


def test_a_program_that_fails_is_reported(played):
    """The workload failed (6), which is said beside the result."""
    played["watch"] = Watched(**{**_fields(SEEN), "exit_code": 3, "user_s": 0.2, "sys_s": 0.8})
    ran = run("--format", "json")
    assert (ran.code, verdict(ran)) == (6, "syscall_bound")
    assert f"the program {sys.executable!r} returned 3: it was run once" in ran.err


def test_an_interrupted_run_keeps_its_rows(played):
    """Ctrl-C while it is watched: figures of the time before, no verdict, state partial."""
    played["watch"] = Watched(**{**_fields(SEEN), "exit_code": -9, "interrupted": True})
    ran = run("--format", "json")
    rows = {row["metric"]: row for row in ran.document["rows"]}
    assert (ran.code, verdict(ran)) == (130, "unknown")
    assert "interrupted after 1.00 s" in rows["verdict_evidence"]["source"]
    assert rows["time_user"]["value"] == 0.98
    assert "moe-prof: interrupted" in ran.err
    assert sessions.load(ran.document["session"]).manifest.state == "partial"


@pytest.mark.parametrize("step", ["sample", "count"])
def test_an_interrupt_later_keeps_what_was_known(played, monkeypatch, step):
    """The watched run stands; what needed more of the steps is not judged."""

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    module = command.sampling if step == "sample" else command.counting
    monkeypatch.setattr(module, step, interrupt)
    ran = run("--format", "json")
    assert (ran.code, verdict(ran)) == (130, "unknown")
    assert {row["metric"]: row["value"] for row in ran.document["rows"]}["time_elapsed"] == 1.0
    assert played


def test_an_interrupt_keeps_a_verdict_that_was_clear(played, monkeypatch):
    """Half of the time is the system's, whatever samples would say."""

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    played["watch"] = Watched(**{**_fields(SEEN), "user_s": 0.2, "sys_s": 0.8})
    monkeypatch.setattr(command.sampling, "sample", interrupt)
    ran = run("--format", "json")
    assert (ran.code, verdict(ran)) == (130, "syscall_bound")


def test_counters_of_a_program(played):
    """Counts without a verdict."""
    played["count"] = Counted(instructions=1e8, l1_misses=5.0)
    ran = main("counters", "--format", "json", "--", sys.executable, "-c", "pass")
    rows = {row["metric"]: row for row in ran.document["rows"]}
    assert (rows["instructions"]["value"], rows["instructions"]["provenance"]) == (1e8, "simulated")
    assert "verdict" not in rows


@pytest.mark.parametrize("width", ["100", "80", "60"])
def test_text_fits(played, monkeypatch, width):
    """The page keeps to the columns there are."""
    monkeypatch.setenv("COLUMNS", width)
    ran = run()
    assert max(len(line) for line in ran.out.splitlines()) <= int(width)
    assert played


@pytest.mark.parametrize(
    ("code", "words", "told"),
    [
        (2, ["topdown", "--"], "name the program"),
        (2, ["topdown", "S3", "--", "true"], "not both"),
        (2, ["topdown"], "SCENARIO (or -- COMMAND)"),
        (2, ["topdown", "--", "./no-such-program"], "was not found"),
        (2, ["topdown", "--", "/dev/null"], "was not found"),
        (6, ["topdown", "--", "sh", "-c", "kill -SEGV $$"], "killed by SIGSEGV"),
        (6, ["topdown", "--max-time", "1s", "--", "sleep", "30"], "did not end within"),
    ],
)
def test_mistakes_are_one_line(monkeypatch, tmp_path, code, words, told):
    """Each has its exit code."""
    monkeypatch.setenv("MOE_PROF_SESSIONS", str(tmp_path / "sessions"))
    ran = main(*words)
    assert (ran.code, ran.out) == (code, "")
    assert told in ran.err


def test_a_program_that_ends_at_once(monkeypatch, tmp_path):
    """A real one: it is too short, and nothing further is tried."""
    monkeypatch.setenv("MOE_PROF_SESSIONS", str(tmp_path / "sessions"))
    monkeypatch.setattr(command.program_verdict, "SHORTEST_S", 1e3)
    assert verdict(main("topdown", "--format", "json", "--", "true")) == "too_short"


def test_programs_are_named_by_their_cause():
    """Each planted cause is one that a verdict can name."""
    from typing import get_args  # noqa: PLC0415

    from moe_prof.analysis.verdict import Cause  # noqa: PLC0415

    known = set(get_args(Cause))
    planted = causes.programs()
    assert len(planted) >= 50
    assert all(set(one.causes) <= known for one in planted)
    assert known - {cause for one in planted for cause in one.causes} == set()


def test_programs_are_built_as_their_sources_say(tmp_path):
    """Flags and arguments are lines of the source; without them the usual ones hold."""
    source = tmp_path / "made.c"
    text = "/* Planted: l2_bound, l3_bound. Why. */\n/* Build: -O0 -g */\n/* Arguments: 8 900 */\n"
    found = causes.described(source, text)
    assert found.causes == ("l2_bound", "l3_bound")
    assert (found.flags, found.arguments) == (("-O0", "-g"), ("8", "900"))
    plain = causes.described(source, "// Planted: spin_bound. Why.\n")
    assert (plain.flags, plain.arguments) == (causes.FLAGS, ())
    with pytest.raises(ValueError, match="Planted"):
        causes.described(source, "int main(void) { return 0; }\n")


def _fields(seen):
    return {name: getattr(seen, name) for name in Watched.__slots__}


def test_a_redirected_file_is_not_lost_in_silence(played, monkeypatch, tmp_path):
    """A program that is run several times cannot read one stream; the note says what to do."""
    (tmp_path / "input").write_text("some lines\n")
    state = (tmp_path / "input").stat()
    monkeypatch.setattr(command.os, "fstat", lambda _: state)
    words = "the program had no input, since it is run several times"
    assert words in " ".join(run().out.split())


def test_a_folder_is_no_program(monkeypatch, tmp_path):
    """Not one that was not found either."""
    monkeypatch.setenv("MOE_PROF_SESSIONS", str(tmp_path / "sessions"))
    ran = main("topdown", "--", str(tmp_path))
    assert (ran.code, ran.complaints) == (
        2, [f"moe-prof: the program '{tmp_path}' is a folder; give the path of a program"],
    )  # fmt: skip
