"""The worker process: prepares, verifies, calibrates and samples kernel variants.

Run as ``python -m moe_prof.measure.worker EVENTS_FD PARENT_PID``; see ``protocol`` for what is
said. A kernel that crashes takes this process with it; the parent knows from the last line which
variant it was. The loops of a sample are calibrated as pyperf does: doubled until a sample lasts
long enough (pyperf's documentation, "Runner: calibration").

Where weights and buffers lie moves a time by more than most changes do (Mytkowicz et al.,
Producing Wrong Data Without Doing Anything Obviously Wrong!, 2009), and stays for the life of a
plan. So every round prepares plans of one thread anew, at other addresses, where that takes little
(after Curtsinger, Berger, Stabilizer, 2013): rounds then scatter by layouts too, and their median
averages over them. A round's samples of one thread are taken in pieces by turns, since other
programs, above all on the other hardware thread of a core, disturb for some milliseconds; the
sample is the pieces' median. Teams keep their threads and take whole samples: threads that are new,
or wake up, may share a CPU for some milliseconds.
"""

from __future__ import annotations

import gc
import json
import math
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, replace
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from moe_prof.errors import MoeProfError
from moe_prof.kernels.checkpoint import layer_weights
from moe_prof.kernels.info import PHASES, PhaseTimes, Spans
from moe_prof.kernels.inputs import random_tokens
from moe_prof.kernels.oracle import errors
from moe_prof.measure import crowd
from moe_prof.measure.plans import MeasuredPlan, load_factory
from moe_prof.measure.protocol import Rounds, WorkerJob, WorkerRequest
from moe_prof.measure.schedule import is_due
from moe_prof.measure.timeline import timeline
from moe_prof.parent_death import die_with_parent

MAX_LOOPS = 1 << 30
WARMUP_SHARE = 8
"""A piece is preceded by one loop in so many, to bring back what other variants evicted."""
PIECES, PIECE_LOOPS = 5, 4
"""Pieces of a sample at most, and loops of a piece at least."""
RENEW_S = 0.2
"""A plan that took longer to prepare keeps its memory for the life of the process."""
PADDING_BYTES = 200_000
"""Most memory taken between two plans, so that they do not come to lie where they were."""
PHASE_WINDOW_S, PHASE_WINDOWS, PHASE_LONGEST_S = 0.02, 5, 0.5
"""A window of forwards, how many at most, and when no further one begins: other programs disturb
some windows, and waiting for a thread that they hold up is not the variant's own.
"""


class Events:
    """The line to the parent."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def emit(self, event: str, variant: str = "", **values: object) -> None:
        """Send one event, at once."""
        message = {"event": event, "variant": variant, **values}
        os.write(self._descriptor, json.dumps(message, default=float).encode() + b"\n")


class Worker:
    """One process's work for one request.

    Raises:
        MoeProfError: the request itself cannot be met.
    """

    def __init__(self, request: WorkerRequest, events: Events) -> None:
        self._request = request
        self._emit = events.emit
        limit_s = request.setup_limit_s
        self._setup_end_s = math.inf if limit_s is None else time.monotonic() + limit_s
        self._plans: dict[str, MeasuredPlan] = {}
        self._jobs = {job.variant: job for job in request.jobs}
        self._kept: dict[str, ExitStack] = {}
        self._loops: dict[str, int] = {}
        self._prepare_s: dict[str, float] = {}
        self._teams: dict[str, int] = {}  # threads that really run
        self._padding: list[npt.NDArray[np.uint8]] = []
        self._generator = np.random.default_rng(os.getpid())
        self._closing = False
        self._factory = load_factory(request.plan_factory, request.build_folder)
        self._weights = layer_weights(request.scenario, request.seed)
        self._x = random_tokens(request.scenario, request.seed)
        with np.load(request.expected) as answer:
            self._rows, self._expected = answer["rows"], answer["y"]

    def run(self) -> None:
        """Do what the request asks."""
        if self._request.mode == "phases":
            with self._watching_others():
                for job in self._request.jobs:
                    self._time_phases(job)
        else:
            self._time_variants()
        self._emit("done")

    def _time_variants(self) -> None:
        with ExitStack() as open_plans:
            for index, job in enumerate(self._request.jobs):
                if index and time.monotonic() > self._setup_end_s:
                    self._emit("late", job.variant)
                    continue
                with self._blaming(job.variant):
                    kept = self._kept[job.variant] = open_plans.enter_context(ExitStack())
                    plan = self._prepare(job, kept)
                    if self._check(job, plan):
                        self._calibrate(job, plan)
                        self._plans[job.variant] = plan
            self._emit("ready")
            rounds = Rounds(**json.loads(sys.stdin.readline()))
            with self._watching_others():
                self._sample_rounds(rounds)
            for job in self._request.jobs:
                if job.variant in self._plans:
                    with self._blaming(job.variant):
                        self._check(job, self._plans[job.variant])
            self._closing = True

    @contextmanager
    def _watching_others(self) -> Iterator[None]:
        """Report what other programs used meanwhile."""
        start = crowd.read()
        yield
        found = crowd.between(start, crowd.read())
        if found is not None:
            self._emit("crowd", **asdict(found))

    def _announce_close(self, variant: str) -> None:
        """A crash in a plan's end is its own; an exception that closes all plans is not."""
        if self._closing:
            self._emit("starting", variant, step="close")

    @contextmanager
    def _blaming(self, variant: str) -> Iterator[None]:
        """Report an error of the variant at hand and go on without it."""
        try:
            yield
        except MoeProfError as error:
            self._plans.pop(variant, None)
            self._emit("failed", variant, error=type(error).__name__, message=str(error))

    def _prepare(self, job: WorkerJob, open_plans: ExitStack) -> MeasuredPlan:
        self._emit("starting", job.variant, step="prepare")
        start_s = time.perf_counter()
        plan = self._enter(job, open_plans)
        prepare_s = self._prepare_s[job.variant] = time.perf_counter() - start_s
        self._teams[job.variant] = plan.info.threads
        self._emit("prepared", job.variant, info=asdict(plan.info), prepare_s=prepare_s)
        return plan

    def _enter(self, job: WorkerJob, open_plans: ExitStack) -> MeasuredPlan:
        plan = open_plans.enter_context(
            self._factory(
                job.variant,
                self._weights,
                threads=job.threads,
                isa=job.isa,
                max_tokens=max(1, len(self._x)),
                build=self._request.build,
            )
        )
        open_plans.callback(self._announce_close, job.variant)  # called just before its close
        return plan

    def _renews(self, name: str) -> bool:
        """Whether every round prepares it anew; a long forward is left as it is, and so is a team.

        New threads may share a CPU for longer than a sample takes, until the system moves one.
        """
        return self._teams[name] == 1 and self._loops[name] > 1 and self._prepare_s[name] <= RENEW_S

    def _renew(self, names: Sequence[str]) -> None:
        """The plans again, in other memory: none may take the place that it has just left."""
        for name in names:
            with self._blaming(name):
                self._emit("starting", name, step="renew")
                self._kept[name].close()
        for place in self._generator.permutation(len(names)):
            name = names[int(place)]
            size = int(self._generator.integers(1, PADDING_BYTES))
            self._padding.append(np.ones(size, np.uint8))
            with self._blaming(name):
                self._emit("starting", name, step="renew")
                self._plans[name] = self._enter(self._jobs[name], self._kept[name])

    def _check(self, job: WorkerJob, plan: MeasuredPlan) -> bool:
        """Compare one forward with the oracle, before the timing and once more after it."""
        self._emit("starting", job.variant, step="verify")
        y = plan.forward(self._x)
        found = errors(y[self._rows], self._expected)
        correct = (
            found.rel_rmse <= job.rel_rmse
            and found.worst_error <= job.worst_token
            and bool(np.isfinite(y).all())
        )
        token = None if found.worst_token is None else int(self._rows[found.worst_token])
        self._emit(
            "verified", job.variant, rel_rmse=_finite(found.rel_rmse),
            worst_error=_finite(found.worst_error), worst_token=token, correct=correct,
        )  # fmt: skip
        return correct

    def _calibrate(self, job: WorkerJob, plan: MeasuredPlan) -> None:
        if job.loops == 1:  # known to be long, and the check has just warmed it up
            self._loops[job.variant] = 1
            return
        self._emit("starting", job.variant, step="calibrate")
        loops = job.loops or 1
        warmups: list[tuple[int, float]] = []
        while True:
            cpu_start_s = time.process_time()
            total_s = _seconds(plan, self._x, loops)
            cpu_s = time.process_time() - cpu_start_s
            warmups.append((loops, total_s / loops))
            if job.loops or total_s >= self._request.min_sample_s or loops >= MAX_LOOPS:
                break
            loops *= 2
        self._loops[job.variant] = loops
        self._emit(
            "calibrated", job.variant, loops=loops, forward_s=total_s / loops, cpu_s=cpu_s / loops,
            warmups=warmups,
            sample_s=total_s / loops * _sample_loops(loops, plan.info.threads)
            + (self._prepare_s[job.variant] if self._renews(job.variant) else 0.0),
        )  # fmt: skip

    def _sample_rounds(self, rounds: Rounds) -> None:
        """Each round takes one sample of every variant that is due, in rotating order."""
        samples = rounds.samples
        names = [name for name in self._plans if samples.get(name, 0) > 0]
        total = max((samples[name] for name in names), default=0)
        limit_s = math.inf if rounds.limit_s is None else time.monotonic() + rounds.limit_s
        gc.collect()
        gc.disable()
        for index in range(total):
            if index and time.monotonic() > limit_s:
                break
            first = index % len(names)
            turn = (*names[first:], *names[:first])
            self._sample_round(index, [n for n in turn if is_due(index, samples[n], total)])
        gc.enable()

    def _sample_round(self, index: int, due: Sequence[str]) -> None:
        """One sample of each, in pieces by turns; ``due`` may name what has failed."""
        self._renew([name for name in due if name in self._plans and self._renews(name)])
        taken: dict[str, list[tuple[float, float]]] = {name: [] for name in due}
        for piece in range(PIECES):
            for name in due if piece % 2 == 0 else reversed(due):
                if name in self._plans and piece < _pieces(self._loops[name], self._teams[name]):
                    with self._blaming(name):
                        taken[name].append(self._piece(name))
        for name in due:
            if name in self._plans:
                wall_s, cpu_s = (float(value) for value in np.median(taken[name], axis=0))
                pieces = len(taken[name])
                loops = _piece_loops(self._loops[name], self._teams[name])
                self._emit(
                    "sampled", name, round=index, loops=pieces * loops, wall_s=pieces * wall_s,
                    cpu_s=pieces * cpu_s,
                )  # fmt: skip

    def _piece(self, name: str) -> tuple[float, float]:
        """Wall and CPU seconds of a piece's loops, after its warm-up."""
        plan, loops = self._plans[name], _piece_loops(self._loops[name], self._teams[name])
        self._emit("starting", name, step="sample")
        if self._loops[name] > 1:
            _seconds(plan, self._x, _warmup_loops(loops))
        cpu_start_s = time.process_time()
        wall_s = _seconds(plan, self._x, loops)
        return wall_s, time.process_time() - cpu_start_s

    def _time_phases(self, job: WorkerJob) -> None:
        with self._blaming(job.variant), ExitStack() as open_plan:
            plan = self._prepare(job, open_plan)
            if not self._check(job, plan):
                return
            self._emit("starting", job.variant, step="phases")
            plan.timers(reset=True)  # raises before the time is spent when there are none
            start_s = time.monotonic()
            forward_s = _seconds(plan, self._x, 1)
            loops = max(1, math.ceil(PHASE_WINDOW_S / max(forward_s, 1e-9)))
            windows = [_window(plan, self._x, loops)]
            while len(windows) < PHASE_WINDOWS and time.monotonic() - start_s < PHASE_LONGEST_S:
                windows.append(_window(plan, self._x, loops))
            best = min(windows, key=lambda window: window.wall_s)
            timers = replace(best, last=_usual_forward(windows, best.wall_s / loops))
            found = None if timers.last is None else timeline(timers.last, PHASES)
            self._emit(
                "timed", job.variant, forwards=loops, wall_s=timers.wall_s, phases=list(PHASES),
                phases_s=timers.phase_s.tolist(), busy_s=timers.busy_s.tolist(),
                wait_s=timers.wait_s.tolist(), timeline=None if found is None else asdict(found),
            )  # fmt: skip


def _window(plan: MeasuredPlan, x: npt.NDArray[np.float32], loops: int) -> PhaseTimes:
    plan.timers(reset=True)
    _seconds(plan, x, loops)
    return plan.timers(reset=True)


def _usual_forward(windows: Sequence[PhaseTimes], wall_s: float) -> Spans | None:
    """The last forward of the window in which it took what it usually takes, nearly."""
    known = [window.last for window in windows if window.last is not None]
    return min(known, key=lambda last: abs(last.wall_s - wall_s), default=None)


def _seconds(plan: MeasuredPlan, x: npt.NDArray[np.float32], loops: int) -> float:
    return float(np.sum(plan.time_forward(x, loops)))


def _pieces(loops: int, team: int) -> int:
    """Pieces of a sample of so many loops; one for a team, whose threads wake up in every piece."""
    return 1 if team > 1 else max(1, min(PIECES, loops // PIECE_LOOPS))


def _piece_loops(loops: int, team: int) -> int:
    return math.ceil(loops / _pieces(loops, team))


def _sample_loops(loops: int, team: int) -> int:
    """All loops that a sample costs."""
    size = _piece_loops(loops, team)
    return _pieces(loops, team) * (size + (_warmup_loops(size) if loops > 1 else 0))


def _warmup_loops(loops: int) -> int:
    """Loops before a piece; a single long forward needs none: its own start is negligible."""
    return 0 if loops == 1 else max(1, loops // WARMUP_SHARE)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def main(argv: list[str]) -> NoReturn:
    """Serve one request from stdin."""
    events_fd, parent_pid = int(argv[0]), int(argv[1])
    die_with_parent(parent_pid)
    data: dict[str, Any] = json.loads(sys.stdin.readline())
    events = Events(events_fd)
    try:
        Worker(WorkerRequest.from_json(data), events).run()
    except MoeProfError as error:
        events.emit("fatal", error=type(error).__name__, message=str(error))
        sys.exit(error.exit_code)
    sys.exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
