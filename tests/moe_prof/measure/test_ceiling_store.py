"""Keeping ceilings: when they are measured again, and what is made of damaged files."""

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest

from moe_prof import machine as machines
from moe_prof.analysis.ceilings import Ceiling, Ceilings
from moe_prof.deadline import Deadline
from moe_prof.measure import ceiling_store as module
from moe_prof.measure.crowd import Crowd

HERE = replace(
    machines.read(), limits=replace(machines.read().limits, affinity=(0, 1), cpu_quota=None)
)


class Played:
    """Measurements of growing rates under a crowd as set; keeps the teams that were measured."""

    def __init__(self):
        self.others = 0.0
        self.teams = []

    def measure(self, machine, teams, **options):
        """Ten times as fast at every further call."""
        self.teams.append(list(teams))
        number = len(self.teams)
        rates = [
            Ceiling("read_l2", team, 10.0 * number, "bytes/s", "measured", "m", 64)
            for team in teams
        ]
        return Ceilings((*rates, Ceiling("latency_l2", 1, 1 / number, "s", "measured", "")))


@pytest.fixture
def play(monkeypatch, tmp_path):
    """A played machine, and a cache of its own."""
    played = Played()
    monkeypatch.setattr(module, "store_path", lambda machine: tmp_path / "cache" / "ceilings.json")
    monkeypatch.setattr(module.crowd, "between", lambda *_: Crowd(2, played.others))
    monkeypatch.setattr(module.measured_ceilings, "measure", played.measure)
    return played


def test_they_are_measured_once(play):
    """The second answer is the first one, capacities included."""
    first = module.obtain(HERE, [2])
    second = module.obtain(HERE, [1, 2])
    assert play.teams == [[1, 2]]
    assert second == first
    assert second.ceilings.entries[0].capacity_bytes == 64
    assert (second.crowded, second.note) == (False, "")
    assert second.age_s() >= 0


def test_another_team_is_measured_with_the_others(play):
    """So that all are of one time."""
    module.obtain(HERE, [2])
    assert module.obtain(HERE, [4]).ceilings.thread_counts == (1, 2, 4)
    assert play.teams == [[1, 2], [1, 2, 4]]


def test_remeasuring_forgets_what_was_kept(play):
    """Even what was better."""
    module.obtain(HERE, [2])
    again = module.obtain(HERE, [2], remeasure=True)
    assert again.ceilings.value("read_l2", 2) == 20.0
    assert module.obtain(HERE, [2]) == again


def test_a_crowded_machine_is_measured_again(play):
    """It is marked, and of two crowded measurements the better values count."""
    play.others = 1.2
    assert module.obtain(HERE, [2]).crowded
    second = module.obtain(HERE, [2])
    assert play.teams == [[1, 2], [1, 2]]
    assert second.crowded
    assert second.ceilings.value("read_l2", 2) == 20.0
    play.others = 0.0
    assert not module.obtain(HERE, [2]).crowded
    module.obtain(HERE, [2])
    assert len(play.teams) == 3


def test_what_a_deadline_cut_short_is_not_kept(play):
    """The next call has the time for all of it."""
    module.obtain(HERE, [2], deadline=Deadline(1e-9))
    module.obtain(HERE, [2])
    assert len(play.teams) == 2


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", '{"schema": 99}', '{"schema": 1, "ceilings": []}',
     '{"schema": 1, "ceilings": [], "measured_at_s": 1, "cpus": 2, "others": 0}',
     '{"schema": 1, "ceilings": [{"name": "x"}], "measured_at_s": 1, "cpus": 2, "others": 0}'],
)  # fmt: skip
def test_a_damaged_file_is_replaced(play, tmp_path, text):
    """Cut off, of another version, of something else."""
    path = tmp_path / "cache" / "ceilings.json"
    path.parent.mkdir()
    path.write_text(text)
    module.obtain(HERE, [2])
    assert len(play.teams) == 1
    assert json.loads(path.read_text())["schema"] == 1
    assert [entry.name for entry in path.parent.iterdir()] == ["ceilings.json"]


def test_a_cache_that_cannot_be_written_is_told(play, tmp_path):
    """The ceilings are there all the same."""
    (tmp_path / "cache").write_text("a file where the folder should be")
    found = module.obtain(HERE, [2])
    assert found.ceilings.value("read_l2", 2) == 10.0
    assert "are not kept in" in found.note


def test_the_file_is_named_by_the_machine(monkeypatch, tmp_path):
    """Another CPU set, another microcode: another file."""
    support = tmp_path / "libmoe_support.so"
    support.write_bytes(b"probes")
    built = SimpleNamespace(support=support)
    monkeypatch.setattr(module.kernel_build, "build", lambda kind: built)
    monkeypatch.setattr(module.kernel_build, "cache_root", lambda: tmp_path)
    one = module.store_path(HERE)
    fewer = replace(HERE, limits=replace(HERE.limits, affinity=(0,)))
    root = tmp_path / "root"
    (root / "proc").mkdir(parents=True)
    (root / "proc" / "cpuinfo").write_text("microcode : 0x99\n")
    names = {one, module.store_path(fewer), module.store_path(HERE, root)}
    assert len(names) == 3
    assert module.store_path(HERE) == one
    support.write_bytes(b"other probes")
    assert module.store_path(HERE) not in names
    assert one.parent == tmp_path
