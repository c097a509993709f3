"""Signals at any moment: one line, exit code 130, and none is lost."""

import os
import signal
import subprocess
import sys
import time

import pytest

SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")


def _run(code, **more):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60,
        **more,
    )  # fmt: skip


@pytest.mark.parametrize("name", SIGNALS)
def test_signal_while_loading(name):
    """While modules are loaded there is nothing to save: one line, no traceback."""
    code = (
        "import os, signal, sys\n"
        "class Stop:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name == 'moe_prof.cli': os.kill(os.getpid(), signal.{name})\n"
        "sys.meta_path.insert(0, Stop())\n"
        "from moe_prof.__main__ import entry_point\n"
        "entry_point()\n"
    )
    done = _run(code)
    assert (done.returncode, done.stderr) == (130, "moe-prof: interrupted\n")


@pytest.mark.parametrize("name", SIGNALS)
def test_signal_raises_in_a_command(name):
    """Later it is a KeyboardInterrupt, which a command may catch."""
    code = (
        "import os, signal\n"
        "from moe_prof import interrupts\n"
        "interrupts.raise_interrupts()\n"
        "try:\n"
        f"    os.kill(os.getpid(), signal.{name})\n"
        "except KeyboardInterrupt:\n"
        "    print('caught')\n"
    )
    assert _run(code).stdout == "caught\n"


def test_interrupt_in_a_destructor_is_not_lost():
    """Python only reports an exception there; the interrupt comes back a moment later."""
    code = (
        "import time\n"
        "from moe_prof import interrupts\n"
        "interrupts.raise_interrupts()\n"
        "class Unlucky:\n"
        "    def __del__(self): raise KeyboardInterrupt\n"
        "Unlucky()\n"
        "try:\n"
        "    time.sleep(30)\n"
        "except KeyboardInterrupt:\n"
        "    print('caught')\n"
    )
    started_s = time.monotonic()
    done = _run(code)
    assert (done.stdout, done.stderr) == ("caught\n", "")
    assert time.monotonic() - started_s < 25


def test_other_errors_in_destructors_are_reported():
    """They are bugs, and shown as ever."""
    code = (
        "from moe_prof import interrupts\n"
        "interrupts.raise_interrupts()\n"
        "class Wrong:\n"
        "    def __del__(self): raise ValueError('told')\n"
        "Wrong()\n"
    )
    assert "ValueError: told" in _run(code).stderr


@pytest.mark.parametrize("name", SIGNALS)
def test_ignored_signal_stays_ignored(name):
    """As nohup and background jobs of a shell expect."""
    code = (
        "import os, signal\n"
        f"signal.signal(signal.{name}, signal.SIG_IGN)\n"
        "from moe_prof import interrupts\n"
        "interrupts.exit_at_once()\n"
        "interrupts.raise_interrupts()\n"
        f"os.kill(os.getpid(), signal.{name})\n"
        "print('alive')\n"
    )
    assert _run(code).stdout == "alive\n"


def test_batch_system_ends_a_command_in_order(tmp_path):
    """SIGTERM to the process alone, in the middle of a run: a partial session, one line first."""
    process = subprocess.Popen(
        [sys.executable, "-m", "moe_prof", "bench", "S1", "--output", str(tmp_path / "s")],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    deadline_s = time.monotonic() + 60
    while not (tmp_path / "s" / "manifest.json").exists() and time.monotonic() < deadline_s:
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGTERM)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130, stderr
    assert "moe-prof: interrupted" in stderr
    assert '"state": "partial"' in (tmp_path / "s" / "manifest.json").read_text()
