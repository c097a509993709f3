"""Running a tool as a child: bounded in time, raw output kept in files, no orphans left behind.

The tool gets its own process group, so that a profiler and the workload below it end together, on a
timeout and on Ctrl-C alike.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from moe_prof.collectors.base import ToolRun
from moe_prof.collectors.command_record import keep_command
from moe_prof.errors import ToolError

KILL_GRACE_S = 2.0


def run_tool(
    argv: Sequence[str],
    *,
    folder: Path,
    name: str,
    timeout_s: float,
    env: Mapping[str, str] | None = None,
    outputs: Mapping[str, Path] | None = None,
    stdin: Path | None = None,
) -> ToolRun:
    """Run ``argv``; ``NAME.command.json``, ``NAME.stdout`` and ``NAME.stderr`` stay in ``folder``.

    Args:
        timeout_s: wall time after which the whole process group is ended.
        env: variables on top of the inherited environment; LC_ALL=C is always set.
        outputs: files that the tool writes by itself, by role; those that exist afterwards are
            listed in the result.
        stdin: a file to read from; by default there is no input.

    Raises:
        ToolError: the tool cannot be started, or did not end in time.
    """
    out_path, err_path = folder / f"{name}.stdout", folder / f"{name}.stderr"
    extra = {"LC_ALL": "C", **(env or {})}
    start_s = time.monotonic()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        keep_command(folder, name, argv, extra)
        with (
            out_path.open("wb") as out,
            err_path.open("wb") as err,
            (stdin or Path(os.devnull)).open("rb") as source,
        ):
            process = subprocess.Popen(
                list(argv), stdin=source, stdout=out, stderr=err, env={**os.environ, **extra},
                start_new_session=True,
            )  # fmt: skip
            returncode = _wait(process, timeout_s)
    except OSError as error:
        place = error.filename or argv[0]
        raise ToolError(f"cannot run {argv[0]} ({place}: {error.strerror})") from error
    if returncode is None:
        raise ToolError(
            f"{' '.join(argv[:2])} did not end within {timeout_s:.0f} s; "
            f"its output so far is in {folder}; allow more time or choose a smaller scenario"
        )
    return ToolRun(
        argv=tuple(argv),
        returncode=returncode,
        stdout=out_path.read_text(encoding="utf-8", errors="replace"),
        stderr=err_path.read_text(encoding="utf-8", errors="replace"),
        elapsed_s=time.monotonic() - start_s,
        outputs={role: path for role, path in (outputs or {}).items() if path.exists()},
        env=extra,
    )


def _wait(process: subprocess.Popen[bytes], timeout_s: float) -> int | None:
    """The exit status, or None when time ran out; nothing of the group is left running then."""
    try:
        return process.wait(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        return None
    finally:
        if process.poll() is None:
            _end_group(process)


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """Ask the group to end, then end what is left of it: a child may outlive the tool itself."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=KILL_GRACE_S)


@contextlib.contextmanager
def keeping_files(place: str) -> Iterator[None]:
    """Around a tool's run: raw files that cannot be kept are an error like any of the tool's.

    Raises:
        ToolError: a file in ``place`` could not be made, written or read.
    """
    try:
        yield
    except OSError as error:
        raise ToolError(
            f"the files in {place} cannot be used: {error.strerror or error}; free some space, or "
            "choose another folder"
        ) from error
