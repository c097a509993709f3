"""The parent's side of a measurement: starts workers, watches deadlines, loses nothing.

The model is pyperf's (worker processes, calibrated loops), with the variants interleaved inside
each process so that they can be compared in pairs. A worker that crashes or hangs costs its
variant at hand; the others go on in a new process.
"""

from __future__ import annotations

import shutil
import signal
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from moe_prof.analysis.work import count_work
from moe_prof.errors import WorkloadError
from moe_prof.kernels.build import Kind, build
from moe_prof.kernels.selection import is_library_path
from moe_prof.kernels.table import BY_NAME
from moe_prof.measure import schedule
from moe_prof.measure.child import Child, ending_text
from moe_prof.measure.clock import SETUP_SHARE, Clock, OutOfTimeError, late_text
from moe_prof.measure.crowd import Crowd, average
from moe_prof.measure.expected import save_expected
from moe_prof.measure.protocol import Mode, Rounds, WorkerRequest, error_of
from moe_prof.measure.records import Record
from moe_prof.measure.remarks import remarks
from moe_prof.measure.results import (
    DEFAULT_FACTORY,
    MOST_PROCESSES,
    Measurement,
    PhaseTimes,
    Request,
    Status,
)
from moe_prof.measure.scratch import scratch_folder
from moe_prof.progress import SILENT, Progress

WORKER = "moe_prof.measure.worker"
BASELINE = "scalar"
CLOSE_S = 10.0
SOFT_SLACK = 1.5
PYTHON_LOAD_S = 1.5
"""What preparing a variant in Python takes when it has been compiled before, cautiously."""


def measure(
    request: Request, progress: Progress = SILENT, *, folder: Path | None = None
) -> Measurement:
    """Time the variants of ``request``; Ctrl-C ends it early with what was measured so far.

    Args:
        folder: where what the workers printed stays; nowhere by default.

    Raises:
        BuildError: the kernels cannot be built.
        UsageError: the request cannot be met (memory, plan factory).
        WorkloadError: a worker died before any variant was at hand.
        MoeProfError: there is no temporary folder, or it is full.
    """
    with scratch_folder() as scratch:
        run = _Run(request, "time", progress, scratch)
        run.guarded()
        run.keep_logs(folder)
    return run.measurement()


def measure_phases(
    request: Request, progress: Progress = SILENT, *, folder: Path | None = None
) -> tuple[PhaseTimes, ...]:
    """Phase timers of the variants, from the ``phases`` build, in a process of their own.

    Raises:
        BuildError: the kernels cannot be built.
        UsageError: the request cannot be met.
        WorkloadError: a worker died before any variant was at hand.
        MoeProfError: there is no temporary folder, or it is full.
        KeyboardInterrupt: Ctrl-C, after the worker has been ended.
    """
    with scratch_folder() as scratch:
        run = _Run(request, "phases", progress, scratch)
        run.drop_python()
        run.guarded()
        run.keep_logs(folder)
    if run.interrupted:
        raise KeyboardInterrupt
    return tuple(replace(r.phase_times(), crowd=run.crowd) for r in run.records.values())


BAD_ACCESS = (-signal.SIGSEGV, -signal.SIGBUS)
LIBRARY_HINT = (
    " (its inputs are read-only and lie, as its output, between pages that may not be touched)"
)


class _Run:
    """One call of :func:`measure` or :func:`measure_phases`."""

    def __init__(self, request: Request, mode: Mode, progress: Progress, scratch: Path) -> None:
        self.records = {job.variant: Record(job) for job in request.jobs}
        self.interrupted = False
        self._request = request
        self._mode: Mode = mode
        self._progress = progress
        self._scratch = scratch
        self._clock = Clock(request.max_time_s, request.budget_s)
        work = count_work(request.scenario)
        self._macs = work.macs
        self._operations = max(work.macs, work.expert_bytes * request.scenario.stored_experts)
        self._checked_tokens = 0
        self._processes: set[int] = set()
        self._index = -1
        self._process_s = 0.0
        self._build_folder: str | None = None
        self._notes: list[str] = []
        self._crowds: list[Crowd] = []
        self._variant, self._step = "", "start"

    def guarded(self) -> None:
        """All of the work; Ctrl-C and the time limit end it."""
        try:
            self._build()
            self._checked_tokens = self._save_expected()
            self._all_processes()
        except KeyboardInterrupt:
            self.interrupted = True
            self._drop_unmeasured("interrupted", "interrupted before it was measured")
        except OutOfTimeError:
            self._notes.append(f"stopped at the time limit of {self._request.max_time_s:g} s")
            self._drop_unmeasured("no_time", "the time limit was reached before it was measured")
        self._progress.clear()

    def drop_python(self) -> None:
        """Leave out the variants without phase timers, before one is prepared for nothing."""
        for name, record in self.records.items():
            if _is_python(name) and self._request.plan_factory == DEFAULT_FACTORY:
                record.drop("unavailable", f"{name}: phase timers exist in C++ variants only")

    def keep_logs(self, folder: Path | None) -> None:
        """Copy what the workers printed, where they printed anything."""
        printed = [log for log in sorted(self._scratch.glob("worker-*.log")) if log.stat().st_size]
        if folder is None or not printed:
            return
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for log in printed:
                shutil.copy(log, folder / log.name)
        except OSError as error:
            self._notes.append(f"what the workers printed is not kept: {error.strerror or error}")

    @property
    def crowd(self) -> Crowd | None:
        """What other programs used while samples or phases were taken."""
        return average(self._crowds)

    def measurement(self) -> Measurement:
        """What has been measured."""
        most = max((len(record.samples_s) for record in self.records.values()), default=0)
        timings = tuple(record.timing(most) for record in self.records.values())
        return Measurement(
            timings=timings,
            processes=len(self._processes),
            interrupted=self.interrupted,
            checked_tokens=self._checked_tokens,
            notes=(*self._notes, *remarks(timings)),
            elapsed_s=self._clock.elapsed_s,
            crowd=self.crowd,
        )

    def _build(self) -> None:
        """Compile here what the workers load: no deadline of theirs is meant for a compiler."""
        names = [name for name in self.records if not _is_python(name)]
        if self._request.plan_factory == DEFAULT_FACTORY and names:
            self._build_folder = str(build(self._kind, self._progress).folder)
        self._clock = Clock(
            self._request.max_time_s, self._request.budget_s
        )  # builds: no measuring

    @property
    def _kind(self) -> Kind:
        return "phases" if self._mode == "phases" else self._request.build

    def _save_expected(self) -> int:
        scenario = self._request.scenario
        checked = save_expected(
            scenario, self._request.seed, self._scratch / "expected.npz",
            macs=self._macs, max_time_s=self._request.max_time_s, progress=self._progress,
        )  # fmt: skip
        if checked < scenario.num_tokens:
            self._notes.append(
                f"{checked} of {scenario.num_tokens} tokens were compared with the oracle"
            )
        return checked

    def _all_processes(self) -> None:
        repeats = None
        if self._request.repeat is not None:
            repeats = schedule.split(self._request.repeat, self._request.processes)
        left = len(repeats) if repeats is not None else self._request.processes
        if self._mode == "phases":
            left = 1
        while any(self._pending(record) for record in self.records.values()):
            if left == 0 and repeats is None and self._wants_more():
                left = 1
            if left == 0:
                break
            if self._clock.hard and self._clock.left_s <= 0:
                raise OutOfTimeError
            fixed = repeats[len(repeats) - left] if repeats is not None else None
            start_s = self._clock.elapsed_s
            planned = self._one_process(left, fixed)
            self._process_s = self._clock.elapsed_s - start_s
            if planned is not None:
                left = min(left, planned) - 1

    def _wants_more(self) -> bool:
        """Whether one process more is asked for, and as long a one as the last fits."""
        enough = self._request.enough
        if self._mode != "time" or enough is None or self._index + 1 >= MOST_PROCESSES:
            return False
        if self._process_s > self._clock.left_s:
            return False
        return not enough({name: record.samples_s for name, record in self.records.items()})

    def _pending(self, record: Record) -> bool:
        return record.active and (self._mode == "time" or record.phases is None)

    def _one_process(self, left: int, fixed: int | None) -> int | None:
        """Run one worker; the processes that fit, itself included, None when it was lost."""
        self._index += 1
        self._variant, self._step = "", "start"
        started_s = time.monotonic()
        planned = left
        with Child(WORKER, self._scratch / f"worker-{self._mode}-{self._index}.log") as child:
            child.send(self._worker_request().to_json())
            while True:
                event = self._next_event(child)
                if event is None:
                    return None
                if event["event"] == "ready":
                    setup_s = time.monotonic() - started_s
                    plan = self._plan(setup_s, left, fixed)
                    planned = plan.processes
                    limit_s = None if fixed is not None else plan.share_s * self._slack()
                    child.send(Rounds(plan.rounds, limit_s).to_json())
                elif event["event"] == "done":
                    child.wait(CLOSE_S)
                    return planned
                else:
                    self._take(event)

    def _worker_request(self) -> WorkerRequest:
        # The last stage is usually the fastest, so a board too slow for its limit has figures of
        # something; the baseline follows, without which there are no speedups.
        pending = [record for record in self.records.values() if self._pending(record)]
        pending.reverse()
        pending[1:] = sorted(pending[1:], key=lambda record: record.job.variant != BASELINE)
        limit_s = SETUP_SHARE * self._clock.left_s if self._clock.hard else None
        return WorkerRequest(
            mode=self._mode,
            shape=self._request.scenario.shape,
            options=self._request.scenario.options,
            distinct_experts=self._request.scenario.distinct_experts,
            checkpoint=self._request.scenario.checkpoint,
            seed=self._request.seed,
            min_sample_s=self._request.min_sample_s,
            plan_factory=self._request.plan_factory,
            expected=str(self._scratch / "expected.npz"),
            jobs=tuple(record.worker_job(self._request.threads) for record in pending),
            build=self._kind,
            setup_limit_s=limit_s,
            build_folder=self._build_folder,
        )

    def _next_event(self, child: Child) -> dict[str, Any] | None:
        """The worker's next event; None when it was lost, and with it its variant at hand."""
        limit_s, blame = self._limit()
        try:
            event = child.read(max(0.0, limit_s))
        except TimeoutError:
            child.kill()
            if blame == "no_time" and self._clock.left_s <= 0:
                raise OutOfTimeError from None
            self._lose(blame, late_text(blame, self._step, limit_s))
            return None
        except WorkloadError as error:
            child.kill()
            self._lose("crashed", f"during {self._step} {error}")
            return None
        if event is None:
            child.wait(CLOSE_S)
            words = child.last_words()
            text = f"its process ended during {self._step}: {ending_text(child.returncode)}"
            if is_library_path(self._variant) and child.returncode in BAD_ACCESS:
                text += LIBRARY_HINT
            self._lose("crashed", f"{text}; it last said: {words}" if words else text)
        return event

    def _lose(self, status: Status, reason: str) -> None:
        if not self._variant:
            raise WorkloadError(f"the measuring process failed before any variant ran: {reason}")
        self.records[self._variant].drop(status, reason)

    def _limit(self) -> tuple[float, Status]:
        """How long to wait for the next event, and what it means when none comes."""
        record = self.records.get(self._variant)
        return self._clock.step_limit(
            self._step if record is not None else "",
            self._operations,
            sample_s=None if record is None else record.sample_s,
            hang_s=self._request.hang_s,
            compiled=is_library_path(self._variant),
        )

    def _take(self, event: dict[str, Any]) -> None:
        kind = event["event"]
        if kind == "fatal":
            raise error_of(event)
        if kind == "crowd":
            self._crowds.append(Crowd(event["cpus"], event["others"]))
        if event["variant"] not in self.records:
            return
        record = self.records[event["variant"]]
        if kind == "starting":
            self._variant, self._step = event["variant"], event["step"]
            self._show_progress()
        elif kind == "prepared":
            record.prepared(event)
        elif kind == "verified":
            record.verified(event)
        elif kind == "late":
            if not record.samples_s:
                record.drop("no_time", "setting up the others left no time for it")
        elif kind == "calibrated":
            record.calibrated(event, self._index)
        elif kind == "sampled":
            record.sampled(event, self._index)
            self._processes.add(self._index)
        elif kind == "timed":
            record.timed(event)
        elif kind == "failed":
            unavailable = event["error"] in ("UnavailableError", "UsageError")
            record.drop("unavailable" if unavailable else "failed", event["message"])

    def _show_progress(self) -> None:
        label, process = self._request.scenario.label, self._index + 1
        if self._step == "sample":
            self._progress.step(f"{label}: timing, interleaved (process {process})")
        elif self._step == "phases":
            self._progress.step(f"{label}: phase timers of {self._variant}")
        elif self._step == "prepare":
            what = self._variant if self._index == 0 else f"again (process {process})"
            self._progress.step(f"{label}: preparing and checking {what}")

    def _plan(self, setup_s: float, left: int, fixed: int | None) -> schedule.Schedule:
        active = [record for record in self.records.values() if record.active]
        if fixed is not None:
            return schedule.Schedule(left, {record.job.variant: fixed for record in active}, 0.0)
        setup_s -= self._compile_s()
        costs = [
            schedule.Cost(record.job.variant, record.sample_s, len(record.samples_s))
            for record in active
            if record.sample_s is not None
        ]
        if not self._clock.hard and self._index == 0:
            self._clock.budget_s += self._compile_s()
        final_check_s = sum(record.forward_s or 0.0 for record in active)
        budget_s = self._clock.left_s - final_check_s
        if not self._clock.hard:
            # A wish gives way to intervals, as long as these take no longer.
            budget_s = max(budget_s, min(schedule.interval_s(costs), self._request.budget_s))
        plan = schedule.plan(
            budget_s, costs, setup_s=setup_s + final_check_s,
            processes=left, at_least=0 if self._clock.hard else 1,
        )  # fmt: skip
        for record in active:
            if plan.rounds.get(record.job.variant) == 0 and not record.samples_s:
                record.drop(
                    "no_time", f"a sample takes {record.sample_s:.3g} s, too long for the limit"
                )
        return plan

    def _slack(self) -> float:
        """By how much rounds may exceed their share of the time."""
        return 1.0 if self._clock.hard else SOFT_SLACK

    def _compile_s(self) -> float:
        """Time that the first process spent on compiling Python variants; later ones load them."""
        return sum(
            max(0.0, (record.prepare_s or 0.0) - PYTHON_LOAD_S)
            for name, record in self.records.items()
            if self._index == 0 and _is_python(name)
        )

    def _drop_unmeasured(self, status: Status, reason: str) -> None:
        for record in self.records.values():
            if not record.samples_s and record.phases is None:
                record.drop(status, reason)


def _is_python(variant: str) -> bool:
    return variant in BY_NAME and BY_NAME[variant].language == "numba"
