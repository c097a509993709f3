"""The probes on this machine, without bars that another program's load could break."""

from __future__ import annotations

import dataclasses

import pytest

from moe_prof import machine as facts
from moe_prof.analysis.ceilings import Ceilings
from moe_prof.deadline import Deadline
from moe_prof.errors import BuildError
from moe_prof.kernels import build as kernel_build
from moe_prof.machine import Cache
from moe_prof.measure import ceilings as module

MIB = module.MIB
TEAM = 2


@pytest.fixture(scope="module")
def here() -> facts.Machine:
    """This machine."""
    return facts.read()


@pytest.fixture(scope="module")
def measured(here) -> Ceilings:
    """One quick run with one and two threads."""
    return module.measure(here, TEAM)


def test_every_entry_is_positive_or_has_a_reason(measured):
    """No zero stands for a missing value."""
    assert [
        entry.name
        for entry in measured.entries
        if not (entry.value is not None and entry.value > 0)
        and not (entry.provenance == "unavailable" and entry.source)
    ] == []


def test_both_teams_have_the_same_ceilings(measured):
    """One thread and two threads are measured alike (clock and latencies are of one thread)."""
    names = {
        threads: {
            e.name
            for e in measured.entries
            if e.threads == threads and not e.name.startswith(("clock", "latency"))
        }
        for threads in (1, TEAM)
    }
    assert names[1] == names[TEAM]


@pytest.mark.parametrize("name", ["int8_portable", "fp32_portable"])
def test_baseline_is_always_there(measured, name):
    """The architecture's baseline needs no feature."""
    assert measured.value(name, 1) is not None


def test_wider_instructions_are_not_slower(measured):
    """The best path is at least the baseline, by definition of best."""
    assert measured.best_int8(1).value >= measured.value("int8_portable", 1)


def test_team_is_not_much_slower_than_one_thread(here):
    """Two threads together do at least half of what one does: many batches, of which the best
    finds both CPUs free even on a busy machine.
    """
    library = module.ProbeLibrary(kernel_build.build("release").support)
    one, team = (
        library.rate(
            "int8_portable",
            module.team_cpus(here, threads),
            set_bytes=0,
            batch_s=0.001,
            batches=100,
        ).value
        for threads in (1, TEAM)
    )
    assert team >= 0.5 * one


def test_near_caches_are_not_slower_than_far_ones(measured):
    """L1 reads at least half as fast as anything beyond it."""
    rates = [measured.value(f"read_{level}", 1) for level in ("l1", "l2", "l3", "memory")]
    known = [rate for rate in rates if rate is not None]
    assert all(known[0] >= 0.5 * rate for rate in known[1:])


def test_clock_is_that_of_a_processor(measured):
    """Between 100 MHz and 10 GHz, or missing with a reason."""
    assert measured.clock_hz is None or 1e8 < measured.clock_hz < 1e10


def test_int8_rate_is_within_what_a_core_can_issue(measured):
    """A probe whose work was optimised away would beat 8 vector instructions a cycle."""
    if measured.clock_hz is None:
        pytest.skip("no clock here")
    widest_macs_per_cycle = {"int8_portable": 8 * 16, "int8_avx2": 8 * 32, "int8_avx_vnni": 8 * 32}
    for name, most in widest_macs_per_cycle.items():
        value = measured.value(name, 1)
        assert value is None or value < most * measured.clock_hz


def test_past_the_deadline_no_probe_begins(here, monkeypatch):
    """Everything is missing for that reason, at once."""

    class Untouchable:
        """A library whose probes must not be called."""

        def __init__(self, path):
            pass

    monkeypatch.setattr(module, "ProbeLibrary", Untouchable)
    late = Deadline(60.0)
    late.end_s = 0.0
    found = module.measure(here, TEAM, deadline=late)
    assert {(entry.value, entry.provenance) for entry in found.entries} == {(None, "unavailable")}
    assert any("left no time" in entry.source for entry in found.entries)
    assert found.find("clock", 1).source == found.find("int8_portable", TEAM).source


def test_the_best_of_some_rates_is_not_the_best(here, monkeypatch):
    """Where time runs out between two probes, a team has all rates of arithmetic or none."""
    deadline = Deadline(60.0)

    class Slow:
        """A library whose third probe takes the rest of the time."""

        calls = 0

        def __init__(self, path):
            pass

        def clock_hz(self):
            return 1e9

        def rate(self, probe, cpus, **options):
            Slow.calls += 1
            if Slow.calls == 3:
                deadline.end_s = 0.0
            return module.Rate(1e9, "")

    monkeypatch.setattr(module, "ProbeLibrary", Slow)
    found = module.measure(here, TEAM, deadline=deadline)
    assert (found.clock_hz, Slow.calls) == (1e9, 3)
    assert found.best_int8(1) is None


def test_small_teams_are_left_to_the_scheduler(machine_tree):
    """Only a team that fills the machine is pinned."""
    metal = facts.read(machine_tree("spr-metal"))
    assert module.team_cpus(metal, 2) == (-1, -1)
    assert module.team_cpus(metal, 4) == (0, 1, 2, 3)


@pytest.mark.parametrize(
    ("cache", "threads", "size"),
    [
        (Cache(1, "Data", 48 << 10, 12, 64, (0,)), 2, 24 << 10),
        (Cache(1, "Data", 48 << 10, 12, 64, (0, 1)), 2, 12 << 10),
        (Cache(2, "Unified", 512 << 10, 8, 64, (0,)), 1, 256 << 10),
        (Cache(3, "Unified", 480 * MIB, 16, 64, (0, 1)), 2, 16 * MIB),
        (Cache(3, "Unified", 32 * MIB, 16, 64, (0, 1, 2, 3)), 4, 4 * MIB),
    ],
)
def test_sets_for_caches(cache, threads, size):
    """Half of a thread's share; a huge L3 is not walked whole."""
    assert module.cache_set_bytes(cache, threads) == size


def test_memory_set_leaves_the_last_cache(machine_tree):
    """Four times a 32 MiB cache, divided among the team."""
    vm = facts.read(machine_tree("zen3-vm"))
    assert module.memory_set_bytes(vm, 2, 256 * MIB) == 64 * MIB


def test_memory_set_of_a_huge_cache_is_refused_with_the_reason(machine_tree):
    """A 480 MiB cache cannot be left within a quick run."""
    vm = facts.read(machine_tree("amx-vm"))
    assert module.memory_set_bytes(vm, 2, 256 * MIB) == (
        "the last-level cache holds 480 MiB: a set that leaves it needs 960 MiB, more than this "
        "measurement takes"
    )


def test_memory_set_respects_a_small_machine(machine_tree):
    """A quarter of the available memory is the most that is touched."""
    board = facts.read(machine_tree("spacemit-k1"))
    tight = dataclasses.replace(
        board, system=dataclasses.replace(board.system, memory_available_bytes=64 * MIB)
    )
    assert isinstance(module.memory_set_bytes(tight, 1, 256 * MIB), str)


def test_library_without_probes_is_refused(tmp_path):
    """A file that is no library: one error, not a ctypes trace."""
    broken = tmp_path / "libmoe_support.so"
    broken.write_text("nothing")
    with pytest.raises(BuildError, match="the probes in"):
        module.ProbeLibrary(broken)
