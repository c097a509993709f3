"""Starting ranks with ``mpirun``, watching them, and saying in one line what became of them.

MPI's own ``mpirun`` kills every rank when one dies, and what it then says of a process may be about
one that it killed itself. So each rank runs below a shell that waits for it and writes its exit
code into a file, before ``mpirun`` can see that anything happened: ranks that were killed
afterwards have no such file. What ranks were doing, and errors that they raised, stand in their
signs (``signs.py``).

Sources: mpiexec(1) of MPICH (Hydra) and Open MPI (PRRTE); exit codes of sh(1): 128 + signal.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import moe_prof
from moe_prof.collectors.command_record import keep_command
from moe_prof.collectors.process_group import run_group
from moe_prof.ep import mpi, signs
from moe_prof.ep.board import error_of
from moe_prof.ep.cases import Trial
from moe_prof.ep.signs import Sign
from moe_prof.errors import MoeProfError, ToolError, WorkloadError
from moe_prof.progress import Progress

RANK_MODULE = "moe_prof.ep.rank"
START_S = 120.0
"""Python, MPI and the kernels' build lock, on a machine that is busy."""
LEAVE_S = 10.0
"""For mpirun to end once a rank is gone or all have finished."""
LOOK_S = 0.05
CASE_STAGE = "case "
"""How the stage of a rank that begins a case begins; others are too many to be told."""
_ASK_TIMEOUT_S = 20.0

_BLAS_THREADS = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
"""Of NumPy in each rank, unless set: the oracle's products of several ranks at a time would start
more threads than there are CPUs, which spin."""

_RANK_NUMBER = "${PMI_RANK:-${OMPI_COMM_WORLD_RANK:-${PMIX_RANK:-0}}}"
_KEEP_CODE = (
    f'"$@"; code=$?; echo "$code" >"$0/{signs.EXIT_FILE.format(_RANK_NUMBER)}"; exit "$code"'
)
_SIGNALLED = 128


def argv_for(folder: Path) -> list[str]:
    """The command of one rank, below the shell that keeps its exit code."""
    rank = [sys.executable, "-m", RANK_MODULE, str(folder)]
    return ["/bin/sh", "-c", _KEEP_CODE, str(folder), *rank]


def mpirun_argv(mpirun: Path, ranks: int, folder: Path, *, open_mpi: bool) -> list[str]:
    """The command that starts the ranks."""
    more = ["--oversubscribe"] if open_mpi else []
    if open_mpi and os.geteuid() == 0:
        more.append("--allow-run-as-root")
    return [str(mpirun), *more, "-n", str(ranks), *argv_for(folder)]


def is_open_mpi(mpirun: Path) -> bool:
    """Whether it is Open MPI's, which needs leave to outnumber CPUs and to run as root."""
    try:
        answer = subprocess.run(
            [str(mpirun), "--version"], capture_output=True, text=True, errors="replace",
            stdin=subprocess.DEVNULL, timeout=_ASK_TIMEOUT_S, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return False
    return any(name in answer.stdout for name in ("Open MPI", "OpenRTE", "PRRTE"))


def launch(trial: Trial, ranks: int, folder: Path, progress: Progress) -> None:
    """Run a trial on so many ranks; their results and output stay in the folder.

    Raises:
        UnavailableError: MPI is missing.
        ToolError: mpirun cannot be started.
        MoeProfError: what the ranks themselves raised.
        WorkloadError: a rank died, hung or never came; it is named.
    """
    argv = argv_for(folder)  # one rank needs no MPI
    if ranks > 1:
        mpirun = mpi.require_mpirun()
        argv = mpirun_argv(mpirun, ranks, folder, open_mpi=is_open_mpi(mpirun))
    out, err = folder / "mpirun.stdout", folder / "mpirun.stderr"
    watch = Watch(folder, ranks, trial.deadline_s, progress)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / signs.JOB).write_text(json.dumps(trial.to_json()), encoding="utf-8")
        keep_command(folder, "mpirun", argv)
        finished = run_group(
            argv, stdout=out, stderr=err, timeout_s=None, inherited=_environment(),
            watch=watch.look,
        )  # fmt: skip
    except OSError as error:
        raise ToolError(
            f"cannot start {ranks} ranks with {argv[0]}: {error.strerror or error}"
        ) from error
    said = "".join(
        path.read_text(encoding="utf-8", errors="replace") for path in (out, err) if path.exists()
    )
    ended = Ended(finished.returncode, said, signs.exit_codes(folder, ranks), watch.never_came)
    trouble = what_happened(signs.read(folder, ranks), ranks, ended)
    if trouble is not None:
        raise trouble


class Watch:
    """Looks at the ranks while mpirun runs.

    Attributes:
        never_came: ranks without a sign when the time to start was over.
    """

    def __init__(self, folder: Path, ranks: int, deadline_s: float, progress: Progress) -> None:
        self._folder, self._ranks = folder, ranks
        self._start_s = max(START_S, deadline_s)
        self._leave_s = deadline_s + LEAVE_S
        self._progress = progress
        self._begun_s = self._looked_s = time.monotonic()
        self._end_s: float | None = None
        self.never_came: tuple[int, ...] = ()

    def look(self) -> bool:
        """Whether to go on waiting for mpirun."""
        now_s = time.monotonic()
        if now_s - self._looked_s < LOOK_S:
            return True
        self._looked_s = now_s
        found = signs.read(self._folder, self._ranks)
        if len(found) < self._ranks and now_s - self._begun_s > self._start_s:
            self.never_came = tuple(r for r in range(self._ranks) if r not in found)
            return False
        if 0 in found and found[0].stage.startswith(CASE_STAGE):
            self._progress.step(f"{self._ranks} ranks: {found[0].stage}")
        codes = signs.exit_codes(self._folder, self._ranks)
        over = any(codes.values()) or len(codes) == self._ranks
        if over and self._end_s is None:
            self._end_s = now_s + self._leave_s
        return self._end_s is None or now_s < self._end_s


@dataclass(frozen=True, slots=True)
class Ended:
    """How mpirun ended.

    Attributes:
        said: what it and the ranks wrote.
        codes: exit codes of the ranks that ended by themselves.
        never_came: ranks without a sign when the time to start was over.
    """

    returncode: int
    said: str
    codes: Mapping[int, int]
    never_came: tuple[int, ...] = ()


def what_happened(found: Mapping[int, Sign], ranks: int, ended: Ended) -> MoeProfError | None:
    """The error that the run ended with, None when all ranks finished well. Pure.

    Args:
        found: last signs by rank.
    """
    if ended.never_came:
        return WorkloadError(
            f"{_ranks_text(ended.never_came)} of {ranks} did not start within {START_S:g} s; the "
            f"run was ended: {_last_words(ended.said)}"
        )
    for rank, code in sorted(ended.codes.items()):
        sign = found.get(rank)
        if code and (sign is None or sign.status is None):
            doing = "starting" if sign is None else sign.stage
            others = "; the other ranks were ended" if ranks > 1 else ""
            return WorkloadError(f"rank {rank} of {ranks} {_how(code)} (last: {doing}){others}")
    errors = [one for one in found.values() if one.status]
    for one in [*(e for e in errors if e.named), *errors]:
        return error_of(one.status or WorkloadError.exit_code, one.text)
    silent = [r for r in range(ranks) if r not in found or found[r].status is None]
    if ended.returncode or silent:
        return WorkloadError(
            f"mpirun ended with code {ended.returncode} before {_ranks_text(silent)} of {ranks} "
            f"had finished: {_last_words(ended.said)}"
        )
    return None


def _how(code: int) -> str:
    """How a rank ended, by the shell's exit code."""
    if code <= _SIGNALLED:
        return f"ended with exit code {code}"
    name = signal.strsignal(code - _SIGNALLED) or "unknown"
    return f"died: {name} (signal {code - _SIGNALLED})"


def _ranks_text(ranks: Sequence[int]) -> str:
    noun = "rank" if len(ranks) == 1 else "ranks"
    return f"{noun} {', '.join(map(str, ranks))}"


def _last_words(said: str) -> str:
    """The last line that says something."""
    lines = [line.strip(" =") for line in said.splitlines() if line.strip(" =")]
    return lines[-1][:200] if lines else "without a word"


def _environment() -> dict[str, str]:
    """That of this process, so that ranks import the same moe_prof, without an outer mpirun's."""
    root = str(Path(moe_prof.__file__).resolve().parent.parent)
    known = mpi.own_environment()
    paths = [root, *filter(None, known.get("PYTHONPATH", "").split(os.pathsep))]
    return _BLAS_THREADS | known | {"PYTHONPATH": os.pathsep.join(dict.fromkeys(paths))}
