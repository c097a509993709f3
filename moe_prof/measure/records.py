"""What has been learned of each variant so far: filled from a worker's events, never lost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from moe_prof.measure.protocol import WorkerJob
from moe_prof.measure.results import Job, PhaseTimes, Status, ThreadTimes, VariantTiming
from moe_prof.measure.timeline import from_dict
from moe_prof.stats import Key

FEW = 0.5
"""Samples below this share of the largest number are told."""

CalibrationRun = tuple[Key, float, float]
"""Its key, wall seconds and CPU seconds, per forward."""


@dataclass(slots=True)
class Record:
    """One variant in the making; :meth:`timing` gives the finished form."""

    job: Job
    status: Status = "ok"
    reason: str = ""
    remark: str = ""
    info: dict[str, object] = field(default_factory=dict)
    rel_rmse: float | None = None
    worst_error: float | None = None
    worst_token: int | None = None
    prepare_s: float | None = None
    loops: int | None = None
    forward_s: float | None = None
    sample_s: float | None = None
    calibration: CalibrationRun | None = None
    samples_s: dict[Key, float] = field(default_factory=dict)
    cpu_s: dict[Key, float] = field(default_factory=dict)
    warmups_s: dict[int, tuple[tuple[int, float], ...]] = field(default_factory=dict)
    phases: PhaseTimes | None = None

    @property
    def active(self) -> bool:
        """Still to be measured."""
        return self.status == "ok"

    def drop(self, status: Status, reason: str) -> None:
        """Measure it no more; the first cause stays."""
        if self.active:
            self.status, self.reason = status, reason

    def worker_job(self, threads: int) -> WorkerJob:
        """The job for a worker, with the loops of an earlier one."""
        job = self.job
        return WorkerJob(
            job.variant, job.isa, job.threads or threads, job.rel_rmse, job.worst_token, self.loops
        )

    def prepared(self, event: Mapping[str, Any]) -> None:
        """What runs, in the plan's own words."""
        self.info = dict(event["info"])
        if self.prepare_s is None:
            self.prepare_s = event["prepare_s"]

    def verified(self, event: Mapping[str, Any]) -> None:
        """Keep the worst check; a wrong result ends the variant."""
        rmse, worst = event["rel_rmse"], event["worst_error"]
        if self.worst_error is None or worst is None or worst > self.worst_error:
            self.rel_rmse, self.worst_error = rmse, worst
            self.worst_token = event["worst_token"]
        if not event["correct"]:
            self.drop("wrong", self._wrong_text())

    def calibrated(self, event: Mapping[str, Any], process: int) -> None:
        """Loops of a sample and what they cost."""
        self.loops = event["loops"]
        self.forward_s = event["forward_s"]
        self.sample_s = event["sample_s"]
        self.warmups_s[process] = tuple((loops, value) for loops, value in event["warmups"])
        self.calibration = ((process, 0), event["forward_s"], event["cpu_s"])

    def sampled(self, event: Mapping[str, Any], process: int) -> None:
        """One sample, per forward."""
        key = (process, event["round"])
        self.samples_s[key] = event["wall_s"] / event["loops"]
        self.cpu_s[key] = event["cpu_s"] / event["loops"]

    def timed(self, event: Mapping[str, Any]) -> None:
        """Phase timers, per forward."""
        forwards = event["forwards"]
        self.phases = PhaseTimes(
            variant=self.job.variant,
            threads=tuple(
                _thread_times(event["phases"], values, busy / forwards, wait / forwards, forwards)
                for values, busy, wait in zip(
                    event["phases_s"], event["busy_s"], event["wait_s"], strict=True
                )
            ),
            wall_s=event["wall_s"] / forwards,
            forwards=forwards,
            timeline=from_dict(event["timeline"]) if event.get("timeline") else None,
        )

    def timing(self, most_samples: int) -> VariantTiming:
        """The finished form; ``most_samples`` is the largest number that any variant has."""
        if self.status in ("no_time", "interrupted") and not self.samples_s and self.calibration:
            return self._from_calibration(self.calibration).timing(most_samples)
        notes = [str(self.info.get("note", "")), self.remark]
        taken = len(self.samples_s)
        if self.status == "ok" and not self.remark and taken < FEW * most_samples:
            notes.append(f"{taken} of {most_samples} rounds to fit the time")
        threads, isa = self.info.get("threads"), self.info.get("isa")
        return VariantTiming(
            variant=self.job.variant, status=self.status, reason=self.reason,
            isa=str(isa or ""), threads=threads if isinstance(threads, int) else None,
            info=self.info, rel_rmse=self.rel_rmse, worst_error=self.worst_error,
            worst_token=self.worst_token, prepare_s=self.prepare_s, loops=self.loops,
            samples_s=self.samples_s, cpu_s=self.cpu_s, warmups_s=self.warmups_s,
            note="; ".join(note for note in notes if note),
        )  # fmt: skip

    def phase_times(self) -> PhaseTimes:
        """The phase timers, or why there are none."""
        if self.phases is not None and self.active:
            return self.phases
        return PhaseTimes(self.job.variant, reason=self.reason or "not measured")

    def _from_calibration(self, run: CalibrationRun) -> Record:
        """Where time ran out before any sample, the last and longest calibration run is one."""
        key, wall_s, cpu_s = run
        remark = f"one sample, taken while calibrating: {self.reason}"
        return replace(
            self, status="ok", reason="", remark=remark, samples_s={key: wall_s}, cpu_s={key: cpu_s}
        )

    def _wrong_text(self) -> str:
        if self.rel_rmse is None or self.worst_error is None:
            return "wrong result: values that are not finite, or nonzero where zero is due"
        return (
            f"wrong result: rel RMSE {self.rel_rmse:.2g} (limit {self.job.rel_rmse:g}), "
            f"worst token {self.worst_token}: {self.worst_error:.2g} "
            f"(limit {self.job.worst_token:g})"
        )


def _thread_times(
    names: Sequence[str], values: Sequence[float], busy_s: float, wait_s: float, forwards: int
) -> ThreadTimes:
    phases = {name: value / forwards for name, value in zip(names, values, strict=True)}
    return ThreadTimes(busy_s, wait_s, phases)
