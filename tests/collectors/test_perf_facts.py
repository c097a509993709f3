"""What perf can do on recorded machines, judged without running it."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from moe_prof import machine
from moe_prof.collectors import perf_facts
from moe_prof.collectors.perf_facts import PerfFacts, judge, judge_hardware
from moe_prof.machine import Machine

BASE = machine.read("/nonexistent")


def of_machine(
    *, paranoid: int | None = 2, pmus: tuple[str, ...] = (), hypervisor: str | None = None,
    container: str | None = None, distribution: tuple[str, ...] = ("debian",),
) -> Machine:  # fmt: skip
    """A machine with these settings and nothing else."""
    system = replace(
        BASE.system, perf_event_paranoid=paranoid, core_pmus=pmus, distribution=distribution,
        kernel="6.8.0-40-generic",
    )  # fmt: skip
    limits = replace(BASE.limits, hypervisor=hypervisor, container=container)
    return replace(BASE, system=system, limits=limits)


def facts(
    made: Machine, *, path: str | None = "/usr/bin/perf", version: str = "6.1.187",
    trouble: str = "", privileged: bool = False,
) -> PerfFacts:  # fmt: skip
    """Facts about perf on a machine."""
    events = {pmu: frozenset({"slots"}) for pmu in made.system.core_pmus}
    return PerfFacts(path, version, trouble, privileged, events, made)


@pytest.mark.parametrize(
    ("distribution", "remedy"),
    [
        (("debian",), "sudo apt install linux-perf"),
        (("ubuntu", "debian"), "sudo apt install linux-tools-6.8.0-40-generic"),
        (("rocky", "rhel", "fedora"), "sudo dnf install perf"),
        (("opensuse-leap", "suse"), "sudo zypper install perf"),
        (("void",), "install the package perf or linux-tools of your distribution"),
    ],
)
def test_missing_perf_names_the_package(distribution: tuple[str, ...], remedy: str) -> None:
    """The command fits the distribution."""
    found = judge(facts(of_machine(distribution=distribution), path=None, version=""))

    assert (found.usable, found.reason, found.remedy) == (False, "perf is not installed", remedy)


def test_perf_of_another_kernel() -> None:
    """Ubuntu's wrapper exists but finds no perf for the running kernel."""
    trouble = "/usr/bin/perf does not run: WARNING: perf not found for kernel 6.8.0-40"
    found = judge(facts(of_machine(distribution=("ubuntu",)), version="", trouble=trouble))

    assert (found.usable, found.reason) == (False, trouble)


def test_paranoid_setting_that_forbids_everything() -> None:
    """Debian's and Ubuntu's 3 and 4."""
    found = judge(facts(of_machine(paranoid=4, pmus=("cpu",))))

    assert not found.usable
    assert found.reason == "kernel.perf_event_paranoid is 4: unprivileged users may count nothing"
    assert found.remedy.startswith("sudo sysctl kernel.perf_event_paranoid=1")


def test_rights_lift_the_paranoid_setting() -> None:
    """CAP_PERFMON is enough."""
    found = judge(facts(of_machine(paranoid=4, pmus=("cpu",)), privileged=True))

    assert (found.usable, found.reason) == (True, "counts on cpu")


def test_user_space_only() -> None:
    """Level 2 still counts the user's own code."""
    found = judge(facts(of_machine(paranoid=2, pmus=("cpu",))))

    assert found.usable
    assert found.reason == "user space only on cpu (kernel.perf_event_paranoid is 2)"


def test_virtual_machine_without_pmu() -> None:
    """perf works for software events; the hardware has a reason and a way out."""
    made = facts(of_machine(hypervisor="QEMU/KVM"))

    assert judge(made).usable
    assert judge(made).reason == (
        "software events only: this virtual machine (QEMU/KVM) has no CPU PMU"
    )
    assert not judge_hardware(made).usable
    assert "pass the PMU through" in judge_hardware(made).remedy


def test_blocked_in_a_container() -> None:
    """A refused probe carries the container's name and its remedy."""
    trouble = "the system call perf_event_open is blocked here; start the container with X"
    found = judge(facts(of_machine(pmus=("cpu",), container="docker"), trouble=trouble))

    assert (found.usable, found.reason, found.remedy) == (
        False,
        "the system call perf_event_open is blocked here (in a container: docker)",
        "start the container with X",
    )


@pytest.mark.parametrize(
    ("mask", "expected"),
    [("000001fffeffffff", True), ("0000004000000000", True), ("0000000000200000", True),
     ("0000000000000000", False), ("", False)],
)  # fmt: skip
def test_capabilities(mask: str, expected: bool) -> None:
    """CAP_PERFMON is bit 38, CAP_SYS_ADMIN bit 21."""
    assert perf_facts.has_rights(mask) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [("6.1.187", (6, 1)), ("5.15.g8bb7eca972ad", (5, 15)), ("6.12-rc3", (6, 12)), ("", (0, 0))],
)
def test_version(text: str, expected: tuple[int, int]) -> None:
    """Distribution suffixes do not matter."""
    assert perf_facts.version_numbers(text) == expected


def test_program_that_is_no_perf(tmp_path: Path) -> None:
    """Something called perf that prints another version line is not used."""
    program = tmp_path / "perf"
    program.write_text(f"#!{sys.executable}\nprint('hello')\n")
    program.chmod(0o755)

    found = perf_facts.gather(of_machine(), perf=str(program))
    assert (found.version, found.trouble) == ("", f"{program} does not run: hello")


def test_plan_facts_carry_the_machine() -> None:
    """What the choice of top-down arguments needs."""
    found = perf_facts.plan_facts(facts(of_machine(paranoid=0, pmus=("cpu",), hypervisor="KVM")))

    assert (found.perf_version, found.paranoid, found.hypervisor) == ((6, 1), 0, "KVM")
    assert found.events == {"cpu": frozenset({"slots"})}
