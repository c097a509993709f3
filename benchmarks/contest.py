"""A contest: contenders in processes of their own, sampled in turns, and what came of it.

In each round every contender takes one sample, in rotating order, while all others sleep; so a
disturbance of the machine meets them all, and two samples of the same round are a pair. The whole
is repeated with new processes, since a process keeps its memory layout for life.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from benchmarks import truth
from benchmarks.contender import Entry
from moe_prof.errors import UsageError
from moe_prof.measure.child import Child, ending_text
from moe_prof.progress import Progress
from moe_prof.scenario import Scenario
from moe_prof.stats import Interval, Key, median_interval, ratio_interval

Status = Literal["ok", "skipped", "wrong", "failed"]

WORKER = "benchmarks.worker"
MAX_ERROR = 0.1
"""Further than this from both truths (relative RMSE) a result is called wrong: coarse int8 schemes
stay below 0.03, saturating ones do not."""
SETTLE_S = 0.004
"""Between two samples: idle pools spin before they sleep, OpenMP's for about a millisecond."""
SETUP_LIMIT_S = 300.0
SAMPLE_LIMIT_S, SAMPLE_LIMIT_TIMES = 30.0, 50.0
CLOSE_S = 5.0


@dataclass(frozen=True, slots=True)
class Sampling:
    """How much to measure: see ``program.add_sampling``."""

    rounds: int
    processes: int
    min_sample_s: float
    max_time_s: float
    seed: int


@dataclass(slots=True)
class Standing:
    """What is known of one contender.

    Attributes:
        status / reason: ``ok``, or why there is no time to trust.
        path: what ran, in its own words.
        facts: of the last ``ready``: prepare_s, loops, errors against the oracle and the layer
            with unquantized activations.
        samples_s: seconds per forward by (process, round).
        cpu_s: CPU seconds per forward, all its threads.
    """

    entry: Entry
    status: Status = "ok"
    reason: str = ""
    path: str = ""
    facts: dict[str, Any] = field(default_factory=dict)
    samples_s: dict[Key, float] = field(default_factory=dict)
    cpu_s: dict[Key, float] = field(default_factory=dict)

    @property
    def time(self) -> Interval | None:
        """Median seconds per forward; None when it was not measured or is wrong."""
        return median_interval(self.samples_s) if self.status == "ok" else None

    @property
    def cpus(self) -> float | None:
        """CPUs that its process kept busy, more than its threads where others wait by spinning."""
        if not self.samples_s:
            return None
        return statistics.median(self.cpu_s[key] / time_s for key, time_s in self.samples_s.items())

    def over(self, other: Standing) -> Interval | None:
        """Its time over the other's, of paired samples; None where one is missing."""
        if self.time is None or other.time is None:
            return None
        return ratio_interval(self.samples_s, other.samples_s)

    def drop(self, status: Status, reason: str) -> None:
        """Measure it no more."""
        self.status, self.reason = status, reason

    def ready(self, event: dict[str, Any]) -> None:
        """Take what it says of itself and judge its result."""
        self.path = event["path"]
        self.facts = {name: value for name, value in event.items() if name not in ("event", "path")}
        found = (event["oracle_rel_rmse"], event["unquantized_rel_rmse"])
        near = min((value for value in found if value is not None), default=None)
        if near is None:
            self.drop("wrong", "its result has values that are not finite")
        elif near > MAX_ERROR:
            self.drop("wrong", f"its result is {100 * near:.0f} % off")

    def as_dict(self) -> dict[str, object]:
        """As JSON types; the seconds' interval is null where there is none."""
        time_s = self.time
        return {
            "contender": self.entry.name, "threads": self.entry.threads, "status": self.status,
            "reason": self.reason, "path": self.path, "time_s": interval_dict(time_s),
            **{
                name: self.facts.get(name)
                for name in (
                    "prepare_s", "loops", "oracle_rel_rmse", "oracle_worst_token",
                    "unquantized_rel_rmse", "unquantized_worst_token",
                )
            },
            "cpus": self.cpus, "samples_s": list(self.samples_s.values()),
            "cpu_s": list(self.cpu_s.values()),
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Contest:
    """One scenario's result, contenders in the order in which they were given.

    Attributes:
        experts: experts that the tokens touch, the shared one included.
    """

    scenario: Scenario
    standings: tuple[Standing, ...]
    experts: int

    def find(self, name: str, threads: int) -> Standing | None:
        """A contender's standing; None when it was not in the contest."""
        return next((s for s in self.standings if s.entry.key == (name, threads)), None)


def hold(
    scenario: Scenario, entries: Sequence[Entry], sampling: Sampling, progress: Progress
) -> Contest:
    """Measure the contenders on one scenario.

    Raises:
        UsageError: two contenders have the same name and threads.
    """
    if len({entry.key for entry in entries}) < len(entries):
        raise UsageError("two contenders have the same name and threads; name each only once")
    standings = tuple(Standing(entry) for entry in entries)
    with tempfile.TemporaryDirectory(prefix="moe_prof-") as scratch:
        folder = Path(scratch)
        progress.step(f"{scenario.label}: computing what is right")
        experts = truth.save(scenario, sampling.seed, folder / "expected.npz")
        heat = _Heat(scenario, standings, sampling, folder, progress)
        for process in range(sampling.processes):
            _one_process(heat, process)
    return Contest(scenario, standings, experts)


def interval_dict(interval: Interval | None) -> dict[str, object] | None:
    """An estimate with its interval, as JSON types."""
    if interval is None:
        return None
    return {
        "value": interval.value, "low": interval.low, "high": interval.high, "n": interval.n,
    }  # fmt: skip


def scaled(interval: Interval | None, factor: float | None) -> Interval | None:
    """An estimate times an exactly known positive factor; None when one is missing."""
    if interval is None or factor is None:
        return None
    low, high = (None if end is None else end * factor for end in (interval.low, interval.high))
    return replace(interval, value=interval.value * factor, low=low, high=high)


@dataclass(frozen=True, slots=True)
class _Heat:
    scenario: Scenario
    standings: tuple[Standing, ...]
    sampling: Sampling
    folder: Path
    progress: Progress

    def request(self, standing: Standing) -> dict[str, object]:
        return {
            "entry": standing.entry.as_dict(), "shape": self.scenario.shape,
            "seed": self.sampling.seed, "expected": str(self.folder / "expected.npz"),
            "min_sample_s": self.sampling.min_sample_s, "loops": standing.facts.get("loops"),
        }  # fmt: skip


def _one_process(heat: _Heat, process: int) -> None:
    """Start every contender anew, one after the other, and take the samples."""
    label = heat.scenario.label
    running: list[tuple[Standing, Child]] = []
    with ExitStack() as children:
        for index, standing in enumerate(heat.standings):
            if standing.status != "ok":
                continue
            heat.progress.step(f"{label}: preparing {standing.entry.name}")
            child = children.enter_context(Child(WORKER, heat.folder / f"{process}-{index}.log"))
            child.send(heat.request(standing))
            event = _event(standing, child, SETUP_LIMIT_S)
            if event is not None:
                standing.ready(event)
            if standing.status == "ok":
                running.append((standing, child))
                child.pause()
            else:
                child.kill()
        heat.progress.step(f"{label}: sampling in turns (process {process + 1})")
        _rounds(process, running, heat.sampling)


def _rounds(process: int, running: list[tuple[Standing, Child]], sampling: Sampling) -> None:
    end_s = time.monotonic() + sampling.max_time_s / sampling.processes
    for number in range(sampling.rounds):
        if not running or (number and time.monotonic() > end_s):
            return
        first = number % len(running)
        for standing, child in (*running[first:], *running[:first]):
            child.resume()
            time.sleep(SETTLE_S)
            child.send({"round": number})
            expected_s = standing.facts["forward_s"] * standing.facts["loops"]
            event = _event(standing, child, SAMPLE_LIMIT_S + SAMPLE_LIMIT_TIMES * expected_s)
            if event is not None:
                standing.samples_s[process, number] = event["forward_s"]
                standing.cpu_s[process, number] = event["cpu_s"]
            child.pause()  # teams that go on spinning after their turn
        running = [(standing, child) for standing, child in running if standing.status == "ok"]


def _event(standing: Standing, child: Child, limit_s: float) -> dict[str, Any] | None:
    """The contender's next word; None when it is out of the contest."""
    try:
        event = child.read(limit_s)
    except TimeoutError:
        child.kill()
        standing.drop("failed", f"no answer within {limit_s:.0f} s")
        return None
    if event is None:
        child.wait(CLOSE_S)
        words = child.last_words()
        ending = ending_text(child.returncode)
        standing.drop("failed", f"its process ended: {ending}{f': {words}' if words else ''}")
        return None
    if event["event"] in ("skipped", "failed"):
        standing.drop(event["event"], event["reason"])
        return None
    return event
