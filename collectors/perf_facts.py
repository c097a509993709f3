"""What perf can do on this machine: tool, permissions, PMU; judged apart from being read.

``gather`` reads files and asks perf for its version; ``judge`` and ``judge_hardware`` are pure.
Nothing changes a setting: a remedy is a command for the user.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from moe_prof.collectors.base import Availability
from moe_prof.collectors.perf_refusals import PARANOID_REMEDY
from moe_prof.collectors.perf_stat import probe_events
from moe_prof.collectors.perf_topdown_plan import Facts
from moe_prof.errors import ToolError, UnavailableError
from moe_prof.machine import Machine
from moe_prof.machine.system import PMU_FOLDER
from moe_prof.machine.tree import Tree

NAME = "perf stat"
FORBIDS_ALL = 3  # a distribution's patch: no events at all for unprivileged users
FORBIDS_KERNEL = 2

_CAP_SYS_ADMIN, _CAP_PERFMON = 21, 38
_VERSION_TIMEOUT_S = 10.0
_VERSION = re.compile(r"perf version\s+v?(?P<text>(?P<major>[0-9]+)\.(?P<minor>[0-9]+)\S*)")
_VENDORS = {"aarch": "ARM", "riscv": "RISC-V"}  # one name for all makers of such cores
_PACKAGES = (
    ("ubuntu", "sudo apt install linux-tools-{kernel}"),
    ("debian", "sudo apt install linux-perf"),
    ("fedora", "sudo dnf install perf"),
    ("rhel", "sudo dnf install perf"),
    ("centos", "sudo dnf install perf"),
    ("arch", "sudo pacman -S perf"),
    ("suse", "sudo zypper install perf"),
    ("alpine", "sudo apk add perf"),
)


@dataclass(frozen=True, slots=True)
class PerfFacts:
    """Everything that decides what perf can do here.

    Attributes:
        path: of the executable, None if there is none.
        version: as perf prints it, "" if it does not run.
        trouble: why it does not run, or why a probe was refused; "" if all is well.
        privileged: root's rights over perf (CAP_PERFMON or CAP_SYS_ADMIN).
        events: names that sysfs lists for each core PMU.
        machine: the other facts.
    """

    path: str | None
    version: str
    trouble: str
    privileged: bool
    events: dict[str, frozenset[str]]
    machine: Machine


def gather(machine: Machine, *, perf: str = "perf", root: str | Path = "/") -> PerfFacts:
    """Read the facts below ``root``, run ``perf --version`` and one short probe."""
    tree = Tree(Path(root))
    path = shutil.which(perf)
    version, trouble = _ask_version(path) if path else ("", "")
    if path and not trouble:
        try:
            probe_events(("task-clock",), perf=path)
        except (UnavailableError, ToolError) as error:
            trouble = str(error)
    return PerfFacts(
        path,
        version,
        trouble,
        has_rights(tree.fields("proc/self/status").get("CapEff", "")),
        {
            pmu: frozenset(tree.names(f"{PMU_FOLDER}/{pmu}/events"))
            for pmu in machine.system.core_pmus
        },
        machine,
    )


def judge(facts: PerfFacts) -> Availability:
    """Whether perf stat can count anything here; the reason says what it cannot."""
    if facts.path is None:
        return Availability(NAME, False, "perf is not installed", _install(facts.machine))
    if not facts.version:
        return Availability(NAME, False, facts.trouble, _install(facts.machine))
    paranoid = facts.machine.system.perf_event_paranoid
    if paranoid is not None and paranoid >= FORBIDS_ALL and not facts.privileged:
        return Availability(
            NAME, False,
            f"kernel.perf_event_paranoid is {paranoid}: unprivileged users may count nothing",
            PARANOID_REMEDY, facts.version,
        )  # fmt: skip
    if facts.trouble:
        reason, _, remedy = facts.trouble.partition("; ")
        if facts.machine.limits.container:
            reason += f" (in a container: {facts.machine.limits.container})"
        return Availability(NAME, False, reason, remedy, facts.version)
    hardware = judge_hardware(facts)
    if not hardware.usable:
        reason = f"software events only: {hardware.reason}"
        return Availability(NAME, True, reason, hardware.remedy, facts.version)
    return Availability(NAME, True, hardware.reason, hardware.remedy, facts.version)


def judge_hardware(facts: PerfFacts) -> Availability:
    """Whether the core's own counters (cycles, instructions, misses) can be had."""
    name = f"{NAME}, hardware counters"
    limits = facts.machine.limits
    if not facts.events:
        if limits.hypervisor:
            which = "" if limits.hypervisor == "unknown" else f" ({limits.hypervisor})"
            return Availability(
                name, False,
                f"this virtual machine{which} has no CPU PMU",
                "run on bare metal, or have the hypervisor pass the PMU through "
                "(QEMU: -cpu host,pmu=on)",
                facts.version,
            )  # fmt: skip
        return Availability(
            name, False,
            "the kernel offers no CPU PMU (nothing for the core in /sys/bus/event_source/devices)",
            "use a kernel with a PMU driver for this CPU", facts.version,
        )  # fmt: skip
    paranoid = facts.machine.system.perf_event_paranoid
    pmus = ", ".join(sorted(facts.events))
    if paranoid is not None and paranoid >= FORBIDS_KERNEL and not facts.privileged:
        return Availability(
            name, True, f"user space only on {pmus} (kernel.perf_event_paranoid is {paranoid})",
            "for kernel time: sudo sysctl kernel.perf_event_paranoid=1", facts.version,
        )  # fmt: skip
    return Availability(name, True, f"counts on {pmus}", "", facts.version)


def availability(machine: Machine, *, perf: str = "perf") -> Availability:
    """Whether perf stat can be used on this machine, why not, and what would change it."""
    return judge(gather(machine, perf=perf))


def plan_facts(facts: PerfFacts) -> Facts:
    """The facts on which the choice of top-down arguments depends."""
    architecture = facts.machine.architecture
    vendor = _VENDORS.get(architecture[:5], facts.machine.processor.vendor)
    core = facts.machine.microarchitecture
    return Facts(
        vendor=vendor,
        perf_version=version_numbers(facts.version),
        events=facts.events,
        core=core.name if core is not None else "",
        paranoid=facts.machine.system.perf_event_paranoid,
        privileged=facts.privileged,
        hypervisor=facts.machine.limits.hypervisor,
    )


def version_numbers(text: str) -> tuple[int, int]:
    """(6, 1) of ``6.1.187``; (0, 0) if it is no version."""
    match = re.match(r"v?([0-9]+)\.([0-9]+)", text)
    return (int(match[1]), int(match[2])) if match else (0, 0)


def has_rights(effective: str) -> bool:
    """Whether the hexadecimal capability mask holds CAP_PERFMON or CAP_SYS_ADMIN."""
    try:
        mask = int(effective, 16)
    except ValueError:
        return False
    return bool(mask >> _CAP_PERFMON & 1 or mask >> _CAP_SYS_ADMIN & 1)


def _ask_version(path: str) -> tuple[str, str]:
    try:
        answer = subprocess.run(
            [path, "--version"], capture_output=True, text=True, errors="replace", check=False,
            timeout=_VERSION_TIMEOUT_S,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        return "", f"{path} does not run: {error}"
    match = _VERSION.search(answer.stdout)
    if match is None:
        said = " ".join((answer.stderr or answer.stdout).split())[:120]
        return "", f"{path} does not run: {said or f'exit code {answer.returncode}'}"
    return match["text"], ""


def _install(machine: Machine) -> str:
    for word, command in _PACKAGES:
        if any(name.startswith(word) or word in name for name in machine.system.distribution):
            return command.replace("{kernel}", machine.system.kernel)
    return "install the package perf or linux-tools of your distribution"
