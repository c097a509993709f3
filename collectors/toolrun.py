"""Running a tool in a process group of its own, with command and raw output kept in files."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from moe_prof.collectors.base import ToolRun
from moe_prof.collectors.command_record import keep_command
from moe_prof.collectors.process_group import run_group
from moe_prof.errors import ToolError


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
    try:
        folder.mkdir(parents=True, exist_ok=True)
        keep_command(folder, name, argv, extra)
        finished = run_group(
            argv, stdout=out_path, stderr=err_path, timeout_s=timeout_s, env=extra, stdin=stdin
        )
    except OSError as error:
        place = error.filename or argv[0]
        raise ToolError(f"cannot run {argv[0]} ({place}: {error.strerror})") from error
    if finished.timed_out:
        raise ToolError(
            f"{' '.join(argv[:2])} did not end within {timeout_s:.0f} s; "
            f"its output so far is in {folder}; allow more time by --max-time, or choose a smaller "
            "scenario"
        )
    return ToolRun(
        argv=tuple(argv),
        returncode=finished.returncode,
        stdout=out_path.read_text(encoding="utf-8", errors="replace"),
        stderr=err_path.read_text(encoding="utf-8", errors="replace"),
        elapsed_s=finished.elapsed_s,
        outputs={role: path for role, path in (outputs or {}).items() if path.exists()},
        env=extra,
    )


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
