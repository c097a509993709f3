"""Starting ranks with ``mpirun``, watching them, and saying in one line what became of them.

MPI's own ``mpirun`` kills every rank when one dies, and says which process it was by its number.
The launcher knows the ranks' process numbers from their signs (``signs.py``), so that it can name
the rank and what it was doing. Where ``mpirun`` says nothing, the first process to be gone is the
one: the launcher holds a descriptor of each (pidfd) and looks at them while it waits.

Sources: mpiexec(1) of MPICH (Hydra) and Open MPI (PRRTE), whose words are parsed; pidfd_open(2).
"""

from __future__ import annotations

import json
import os
import re
import select
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
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

_HYDRA_PID = re.compile(r"=\s+PID (\d+) RUNNING AT")
_HYDRA_END = re.compile(r"EXIT STRING: (.+?)\s*$", re.MULTILINE)
_HYDRA_CODES = re.compile(r"Exit codes: (.+)$", re.MULTILINE)
_KILLED = 9
_OPEN_MPI_END = re.compile(r"process rank (\d+) .*?exited on (signal \d+ \([^)]*\))", re.DOTALL)


def argv_for(mpirun: Path, ranks: int, folder: Path, *, open_mpi: bool) -> list[str]:
    """The command that starts the ranks."""
    more = ["--oversubscribe"] if open_mpi else ["-print-all-exitcodes"]
    if open_mpi and os.geteuid() == 0:
        more.append("--allow-run-as-root")
    return [
        str(mpirun), *more, "-n", str(ranks), sys.executable, "-m", RANK_MODULE, str(folder),
    ]  # fmt: skip


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
    argv = [sys.executable, "-m", RANK_MODULE, str(folder)]  # one rank needs no MPI
    if ranks > 1:
        mpirun = mpi.require_mpirun()
        argv = argv_for(mpirun, ranks, folder, open_mpi=is_open_mpi(mpirun))
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
    finally:
        watch.close()
    said = "".join(
        path.read_text(encoding="utf-8", errors="replace") for path in (out, err) if path.exists()
    )
    found = signs.read(folder, ranks)
    trouble = what_happened(found, ranks, said, finished.returncode, watch)
    if trouble is not None:
        raise trouble


class Watch:
    """Looks at the ranks while mpirun runs.

    Attributes:
        first_gone: the rank that was gone first without an outcome, None when there is none.
        never_came: ranks without a sign when the time to start was over.
    """

    def __init__(self, folder: Path, ranks: int, deadline_s: float, progress: Progress) -> None:
        self._folder, self._ranks = folder, ranks
        self._start_s = max(START_S, deadline_s)
        self._leave_s = deadline_s + LEAVE_S
        self._progress = progress
        self._begun_s = self._looked_s = time.monotonic()
        self._descriptors: dict[int, int] = {}
        self._end_s: float | None = None
        self.first_gone: int | None = None
        self.never_came: tuple[int, ...] = ()

    def look(self) -> bool:
        """Whether to go on waiting for mpirun."""
        now_s = time.monotonic()
        if now_s - self._looked_s < LOOK_S:
            return True
        self._looked_s = now_s
        found = signs.read(self._folder, self._ranks)
        self._follow(found)
        if len(found) < self._ranks and now_s - self._begun_s > self._start_s:
            self.never_came = tuple(r for r in range(self._ranks) if r not in found)
            return False
        if 0 in found and found[0].stage.startswith(CASE_STAGE):
            self._progress.step(f"{self._ranks} ranks: {found[0].stage}")
        over = self.first_gone is not None or (
            len(found) == self._ranks and all(one.status is not None for one in found.values())
        )
        if over and self._end_s is None:
            self._end_s = now_s + self._leave_s
        return self._end_s is None or now_s < self._end_s

    def close(self) -> None:
        """Give the descriptors back."""
        for descriptor in self._descriptors.values():
            os.close(descriptor)
        self._descriptors.clear()

    def _follow(self, found: Mapping[int, Sign]) -> None:
        """Open descriptors of new ranks, and see who is gone."""
        for rank, sign in found.items():
            if rank not in self._descriptors and sign.host == socket.gethostname():
                with suppress(OSError, AttributeError):  # gone already, or an old kernel
                    self._descriptors[rank] = os.pidfd_open(sign.pid)
        if self.first_gone is not None or not self._descriptors:
            return
        poll = select.poll()
        ranks = {descriptor: rank for rank, descriptor in self._descriptors.items()}
        for descriptor in ranks:
            poll.register(descriptor, select.POLLIN)
        gone = [ranks[descriptor] for descriptor, _ in poll.poll(0)]
        fresh = signs.read(self._folder, self._ranks)
        silent = [rank for rank in gone if rank in fresh and fresh[rank].status is None]
        if len(silent) == 1 or (silent and len(silent) < self._ranks):
            self.first_gone = silent[0]


def what_happened(
    found: Mapping[int, Sign], ranks: int, said: str, returncode: int, watch: Watch
) -> MoeProfError | None:
    """The error that the run ended with, None when all ranks finished well. Pure but for ``watch``.

    Args:
        found: last signs by rank.
        said: what mpirun and the ranks wrote.
    """
    if watch.never_came:
        return WorkloadError(
            f"{_ranks_text(watch.never_came)} of {ranks} did not start within {START_S:g} s; the "
            f"run was ended: {_last_words(said)}"
        )
    errors = [one for one in found.values() if one.status]
    naming = [one for one in errors if one.named] or errors
    culprit = _named_by_mpirun(found, said)
    if culprit is None and not errors:
        culprit = watch.first_gone
    if culprit is not None and not any(culprit == one.rank for one in errors):
        how = _how(said, returncode)
        doing = found[culprit].stage if culprit in found else "starting"
        return WorkloadError(
            f"rank {culprit} of {ranks} {how} (last: {doing}); the other ranks were ended"
        )
    if naming:
        return error_of(naming[0].status or WorkloadError.exit_code, naming[0].text)
    if returncode or len(found) < ranks or any(one.status is None for one in found.values()):
        silent = [r for r in range(ranks) if r not in found or found[r].status is None]
        return WorkloadError(
            f"mpirun ended with code {returncode} before {_ranks_text(silent)} of {ranks} had "
            f"finished: {_last_words(said)}"
        )
    return None


def _named_by_mpirun(found: Mapping[int, Sign], said: str) -> int | None:
    """The rank that mpirun tells of."""
    match = _OPEN_MPI_END.search(said)
    if match is not None:
        return int(match[1])
    match = _HYDRA_PID.search(said)
    if match is not None:
        return next((r for r, one in found.items() if one.pid == int(match[1])), None)
    codes = _exit_codes(said)
    return next((r for r, code in enumerate(codes) if code not in (0, _KILLED)), None)


def _exit_codes(said: str) -> list[int]:
    """Wait statuses of all ranks as MPICH's mpirun lists them; killed ones have 9."""
    match = _HYDRA_CODES.search(said)
    words = [] if match is None else re.sub(r"\[[^]]*\]", ",", match[1]).split(",")
    return [int(word) for word in words if word.strip().isdecimal()]


def _how(said: str, returncode: int) -> str:
    """How a rank ended, in mpirun's words."""
    match = _OPEN_MPI_END.search(said)
    if match is not None:
        return f"died of {match[2]}"
    match = _HYDRA_END.search(said)
    if match is not None:
        return f"died: {match[1]}"
    return f"ended with exit code {returncode}" if returncode >= 0 else "died"


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
