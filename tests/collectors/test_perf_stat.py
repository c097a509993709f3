"""The perf stat collector end to end, against a program that plays perf and checks what it gets."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from moe_prof.collectors import perf_stat
from moe_prof.collectors.perf_stat import Control, argv
from moe_prof.collectors.workload import WorkloadStatus
from moe_prof.errors import ToolError, UnavailableError, WorkloadError

FOLDER = Path(__file__).parents[1] / "fixtures" / "perf"
WORKLOAD = (sys.executable, str(FOLDER / "fake_workload.py"))
TIME_LIMIT_S = 30.0


@pytest.fixture
def pid_file(tmp_path: Path) -> Iterator[Path]:
    """Where the workload writes its process id; the test ends with that process gone."""
    path = tmp_path / "pid"
    yield path
    assert not is_alive(int(path.read_text()))


def interrupt_when_there(path: Path) -> None:
    """Send this process the test's interrupt once the file has a line, within the time limit."""
    deadline_s = time.monotonic() + TIME_LIMIT_S
    while time.monotonic() < deadline_s:
        with contextlib.suppress(FileNotFoundError):
            if path.read_text().strip():
                os.kill(os.getpid(), signal.SIGUSR1)
                return
        time.sleep(0.05)


def is_alive(pid: int) -> bool:
    """Whether a process still runs (a zombie does not)."""
    for _ in range(100):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return False
        if state in "ZX":
            return False
        time.sleep(0.02)
    return True


def test_argv_of_a_region_of_interest() -> None:
    """Counters start off and are switched over the fifos; output goes to a file."""
    line = argv(
        ("./bench", "1"),
        output=Path("/raw/perf.csv"),
        events=("cycles", "instructions"),
        control=Control(Path("/t/ctl"), Path("/t/ack")),
    )

    assert line == (
        "perf", "stat", "-x", ";", "-o", "/raw/perf.csv", "-D", "-1", "--control",
        "fifo:/t/ctl,/t/ack", "-e", "cycles,instructions", "--", "./bench", "1",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("form", "option"), [("json", ("-j",)), ("text", ()), ("csv", ("-x", ";"))]
)
def test_argv_forms(form: str, option: tuple[str, ...]) -> None:
    """Each form has its own option; top-down arguments replace the events."""
    line = argv(
        ("./bench",),
        output=Path("o"),
        form=form,
        events=(),
        extra=("--topdown",),  # type: ignore[arg-type]
    )

    assert line == ("perf", "stat", *option, "-o", "o", "--topdown", "--", "./bench")


def test_region_is_counted_and_raw_files_are_kept(perf: str, tmp_path: Path) -> None:
    """Handshake, workload, report: the readings are there, the raw files stay."""
    result = perf_stat.run(
        (*WORKLOAD, "ok"), tmp_path / "raw", timeout_s=TIME_LIMIT_S, perf=perf, events=("slots",)
    )
    report = perf_stat.read(result)

    assert report.readings[0].value == 482000000.0
    assert result.stdout == "workload started\n"
    assert {role: path.name for role, path in result.outputs.items()} == {
        "report": "perf_stat.csv",
        "stdout": "perf_stat.stdout",
        "stderr": "perf_stat.stderr",
        "status": "perf_stat.status",
    }
    assert perf_stat.workload_status(result) == WorkloadStatus(0)


def test_exact_command_is_kept(perf: str, tmp_path: Path) -> None:
    """What was run can be read beside the raw output."""
    result = perf_stat.run((*WORKLOAD, "ok"), tmp_path, timeout_s=TIME_LIMIT_S, perf=perf)
    kept = json.loads((tmp_path / "perf_stat.command.json").read_text())

    assert kept == {"argv": list(result.argv), "env": {"LC_ALL": "C"}}


def test_placeholder_is_filled(perf: str, tmp_path: Path) -> None:
    """A workload with its own option for the fifos names their place."""
    command = (*WORKLOAD, "ok", "--roi-fifo", perf_stat.ROI_PLACEHOLDER)
    result = perf_stat.run(command, tmp_path, timeout_s=TIME_LIMIT_S, perf=perf)

    assert result.argv.count("--roi-fifo") == 1
    assert perf_stat.read(result).readings[0].status == "ok"


def test_whole_process_needs_no_fifos(perf: str, tmp_path: Path) -> None:
    """Without a region the workload's arguments are left alone."""
    result = perf_stat.run(
        (*WORKLOAD, "ok"), tmp_path, timeout_s=TIME_LIMIT_S, roi=False, perf=perf
    )

    assert result.argv[-3:] == (*WORKLOAD, "ok")
    assert "--control" not in result.argv


def test_perf_is_missing(tmp_path: Path) -> None:
    """One line that says so."""
    with pytest.raises(UnavailableError, match="is not installed; `moe-prof doctor`"):
        perf_stat.run(("true",), tmp_path, timeout_s=TIME_LIMIT_S, perf=str(tmp_path / "nothing"))


def test_perf_is_forbidden(perf: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The value of the setting and the command that changes it."""
    monkeypatch.setenv("FAKE_PERF", "forbidden")

    with pytest.raises(UnavailableError, match="perf_event_paranoid is 4; sudo sysctl") as caught:
        perf_stat.run((*WORKLOAD, "ok"), tmp_path, timeout_s=TIME_LIMIT_S, perf=perf)
    assert "\n" not in str(caught.value)


def test_event_is_not_supported(perf: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """perf names the event; so does the error."""
    monkeypatch.setenv("FAKE_PERF", "unsupported")

    with pytest.raises(UnavailableError, match="the event cycles cannot be counted here"):
        perf_stat.run((*WORKLOAD, "ok"), tmp_path, timeout_s=TIME_LIMIT_S, perf=perf)


def test_perf_is_killed(
    perf: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pid_file: Path
) -> None:
    """perf's own death is its failure, and its workload does not live on."""
    monkeypatch.setenv("FAKE_PERF", "killed")
    monkeypatch.setenv("FAKE_PERF_WAIT_FOR", str(pid_file))

    with pytest.raises(ToolError, match="perf was killed by signal 9"):
        perf_stat.run(
            (*WORKLOAD, "hang", str(pid_file)), tmp_path, timeout_s=TIME_LIMIT_S, perf=perf
        )


def test_workload_crash_behind_exit_code_0(perf: str, tmp_path: Path) -> None:
    """perf says 0; the recorded status says SIGSEGV."""
    with pytest.raises(WorkloadError, match="failed: killed by SIGSEGV; its output is in"):
        perf_stat.run((*WORKLOAD, "crash"), tmp_path, timeout_s=TIME_LIMIT_S, perf=perf)


def test_workload_fails(perf: str, tmp_path: Path) -> None:
    """Its exit code is told."""
    with pytest.raises(WorkloadError, match="failed: exit code 3"):
        perf_stat.run((*WORKLOAD, "fail"), tmp_path, timeout_s=TIME_LIMIT_S, perf=perf)


def test_workload_is_not_found(perf: str, tmp_path: Path) -> None:
    """A wrong path is the workload's fault, not perf's."""
    with pytest.raises(WorkloadError, match=r"'\./nothing' was not found"):
        perf_stat.run(("./nothing",), tmp_path, timeout_s=TIME_LIMIT_S, perf=perf)


def test_workload_that_never_switches_counters_on(perf: str, tmp_path: Path) -> None:
    """It ends well but nothing was counted: say why, give no zeros."""
    result = perf_stat.run((*WORKLOAD, "silent"), tmp_path, timeout_s=TIME_LIMIT_S, perf=perf)

    with pytest.raises(WorkloadError, match="never switched the counters on"):
        perf_stat.read(result)


def test_workload_that_never_ends(perf: str, tmp_path: Path, pid_file: Path) -> None:
    """The time limit ends the whole group."""
    with pytest.raises(WorkloadError, match=r"did not end within 1\.5 s and was stopped"):
        perf_stat.run((*WORKLOAD, "hang", str(pid_file)), tmp_path, timeout_s=1.5, perf=perf)


def test_interrupt_ends_the_group(perf: str, tmp_path: Path, pid_file: Path) -> None:
    """Ctrl-C leaves no process behind."""
    previous = signal.signal(signal.SIGUSR1, signal.default_int_handler)
    watcher = threading.Thread(target=interrupt_when_there, args=(pid_file,))
    watcher.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            perf_stat.run(
                (*WORKLOAD, "hang", str(pid_file)), tmp_path, timeout_s=TIME_LIMIT_S, perf=perf
            )
    finally:
        watcher.join()
        signal.signal(signal.SIGUSR1, previous)


def test_folder_that_cannot_be_made(perf: str, tmp_path: Path) -> None:
    """The folder and the reason are named."""
    (tmp_path / "file").write_text("")

    with pytest.raises(ToolError, match="cannot make the folder"):
        perf_stat.run(("true",), tmp_path / "file" / "raw", timeout_s=TIME_LIMIT_S, perf=perf)


def test_earlier_output_is_not_taken_for_new(
    perf: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second run that fails does not leave the first one's report."""
    perf_stat.run((*WORKLOAD, "ok"), tmp_path, timeout_s=TIME_LIMIT_S, perf=perf)
    monkeypatch.setenv("FAKE_PERF", "forbidden")

    with pytest.raises(UnavailableError):
        perf_stat.run((*WORKLOAD, "ok"), tmp_path, timeout_s=TIME_LIMIT_S, perf=perf)
    assert not (tmp_path / "perf_stat.csv").exists()


def test_temporary_folder_with_a_comma(
    perf: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """perf would cut the name of the fifo."""
    folder = tmp_path / "a,b"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))

    with pytest.raises(ToolError, match="set TMPDIR"):
        perf_stat.run((*WORKLOAD, "ok"), tmp_path, timeout_s=TIME_LIMIT_S, perf=perf)


def test_probe_tells_what_can_be_counted(
    perf: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each event with its status, from one run."""
    report = tmp_path / "probe.csv"
    report.write_text(
        "<not supported>;;cycles;0;100.00;;\n12;;page-faults:u;100;100.00;;\n"
        "<not counted>;;branches;0;100.00;;\n"
    )
    monkeypatch.setenv("FAKE_PERF_REPORT", str(report))

    assert perf_stat.probe_events(("cycles", "page-faults", "branches"), perf=perf) == {
        "cycles": "not_supported",
        "page-faults": "ok",
        "branches": "not_counted",
    }
