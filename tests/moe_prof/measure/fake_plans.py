"""Plans without kernels for the tests of measuring; a plan's name says how it misbehaves.

``good`` answers as the oracle does; ``NAME-at-STEP`` does NAME (crash, hang, raise, lack, exit,
scribble) at STEP (prepare, forward, time, timers, close); ``wrong`` is off by a factor, ``nan``
gives NaN, ``drifts`` is right once; ``slow`` takes real time, ``compiles`` takes long to prepare in
the first process, ``sluggish...`` takes long for its first forward, ``disturbed`` waits long in its
first window of phase timers, ``once`` refuses to be prepared a second time. All other times are
invented, so that the tests are fast.
"""

import contextlib
import os
import signal
import stat
import time
from pathlib import Path

import numpy as np

from moe_prof.errors import InputError, UnavailableError
from moe_prof.kernels.info import PHASES, PhaseTimes, PlanInfo
from moe_prof.kernels.oracle import reference

FORWARD_S = {"good": 2e-3, "fast": 1e-3, "scalar": 4e-3, "autovec": 3e-3}
SLOW_S = 0.5
COMPILE_S = SLUGGISH_S = 1.5
GENERATORS = {}  # by name, for the life of the process: plans prepared anew go on with its noise
FIRST_WINDOW = 3  # resets: to see whether there are timers, before and after the first window


def misbehave(deed):
    """Do what the plan's name says."""
    if deed == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    elif deed == "hang":
        time.sleep(600)
    elif deed == "raise":
        raise InputError("the plan refuses")
    elif deed == "lack":
        raise UnavailableError("this machine lacks it")
    elif deed == "exit":
        raise SystemExit("out of luck")
    elif deed == "scribble":  # into every pipe that it can find, whatever its number
        for descriptor in map(int, os.listdir("/proc/self/fd")):
            with contextlib.suppress(OSError):
                if descriptor > 2 and stat.S_ISFIFO(os.fstat(descriptor).st_mode):
                    os.write(descriptor, b"hello\n")


class FakePlan:
    """A plan that follows its name."""

    def __init__(self, name, weights, threads, isa):
        self.name, self.weights, self.forwards, self.resets = name, weights, 0, 0
        self.deed, _, self.step = name.partition("-at-")
        self.info = PlanInfo(variant=name, isa=isa or "fake", threads=threads, max_tokens=8)
        self.generator = GENERATORS.setdefault(name, np.random.default_rng(len(name)))
        self.at("prepare")
        if "FAKE_PLANS_PREPARED" in os.environ:
            self.note_preparation(Path(os.environ["FAKE_PLANS_PREPARED"]))
        if name == "compiles":
            self.compile_once()

    def note_preparation(self, log):
        """Write the name; ``once`` may stand there once."""
        with log.open("a+", encoding="utf-8") as file:
            file.seek(0)
            if self.name == "once" and "once" in file.read().split():
                misbehave("raise")
            file.write(f"{self.name}\n")

    def compile_once(self):
        """Take long unless a former process has left its mark."""
        mark = Path(os.environ["FAKE_PLANS_MARK"])
        if not mark.exists():
            mark.touch()
            time.sleep(COMPILE_S)

    def at(self, step):
        """Misbehave when this is the step."""
        if step == self.step:
            misbehave(self.deed)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.at("close")

    def forward(self, x):
        """The oracle's answer, or a wrong one."""
        self.at("forward")
        self.forwards += 1
        if self.name.startswith("sluggish") and self.forwards == 1:
            time.sleep(SLUGGISH_S)
        y = reference(self.weights, x).astype(np.float32)
        if self.name == "nan":
            y[-1, -1] = np.nan
        wrong = self.name == "wrong" or (self.name == "drifts" and self.forwards > 1)
        return y * np.float32(1.5) if wrong else y

    def time_forward(self, x, iterations):
        """An invented time with 1 % noise."""
        self.at("time")
        self.forwards += iterations
        if self.name == "slow":
            time.sleep(SLOW_S * iterations)
        forward_s = SLOW_S if self.name == "slow" else FORWARD_S.get(self.name, 2e-3)
        noise = 1 + 0.01 * self.generator.standard_normal()
        return np.array([iterations * forward_s * noise])

    def timers(self, *, reset=False):
        """One second busy and one third of a second waiting on each of two threads."""
        self.at("timers")
        phases = np.zeros((2, len(PHASES)))
        phases[:, 3] = 1.0
        self.resets += reset
        wait_s = 9.0 if self.name == "disturbed" and self.resets <= FIRST_WINDOW else 1 / 3
        return PhaseTimes(phases, np.array([1.0, 1.0]), np.array([wait_s, wait_s]), 1 + wait_s)


def factory(name, weights, *, threads, isa, max_tokens, build):
    """The plan of that name."""
    os.write(1, b"a library that prints\n")  # must not disturb the worker's events
    if "FAKE_PLANS_BUILD" in os.environ:
        Path(os.environ["FAKE_PLANS_BUILD"]).write_text(build)
    return FakePlan(name, weights, threads, isa)


def stumbles(name, weights, *, threads, isa, max_tokens, build):
    """A factory with a mistake of its own."""
    raise ZeroDivisionError("a mistake in the factory")


def scripted(name, weights, *, threads, isa, max_tokens, build):
    """The plan whose behaviour FAKE_PLANS (``variant=plan,...``) gives to a variant's name."""
    script = dict(pair.split("=") for pair in os.environ["FAKE_PLANS"].split(",") if pair)
    return FakePlan(script.get(name, name), weights, threads, isa)
