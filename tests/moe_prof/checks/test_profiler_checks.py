"""Collectors: each obstacle gives its own reason and remedy."""

from __future__ import annotations

import dataclasses

import pytest

from moe_prof.checks import CHECKS as SHOWN
from moe_prof.checks import profilers
from moe_prof.checks.packages import family, install_line
from moe_prof.commands import COMMANDS
from tests.moe_prof.checks.contexts import context

CHECKS = {check.name: check for check in profilers.CHECKS}


def judged(name, made):
    """One check's finding."""
    return CHECKS[name].judge(made)


def test_only_collectors_of_some_command_are_shown():
    """Every name in ``used_by`` is a command, and a collector without one is left out."""
    names = {command.name for command in COMMANDS}
    for check in CHECKS.values():
        assert check.used_by is not None
        assert set(check.used_by) <= names
        assert (check in SHOWN) == bool(check.used_by)


def test_builtin_always_works(machine_tree):
    """A clock is everywhere."""
    assert judged("builtin", context(machine_tree("quota-container"))).usable


@pytest.mark.parametrize("name", ["perf stat", "perf topdown", "perf record"])
def test_missing_perf_names_the_package(name, machine_tree):
    """No perf: the install line of the distribution."""
    made = context(machine_tree("amx-vm"))
    found = judged(
        name, dataclasses.replace(made, perf=dataclasses.replace(made.perf, path=None, version=""))
    )
    assert (found.usable, found.reason) == (False, "perf is not installed")
    assert "linux-perf" in found.remedy


def test_no_pmu_still_counts_software_events(machine_tree):
    """perf works in a VM without a PMU, with software events only."""
    found = judged("perf stat", context(machine_tree("zen3-vm", _paranoid("1"))))
    assert found.usable
    assert found.reason.startswith("software events only")


def test_topdown_without_a_pmu_asks_for_one(machine_tree):
    """The remedy is a PMU; the command models meanwhile."""
    found = judged("perf topdown", context(machine_tree("zen3-vm", _paranoid("1"))))
    assert not found.usable
    assert "no CPU PMU; 'topdown' models its figures instead" in found.reason
    assert "bare metal" in found.remedy


def test_paranoid_kernel_forbids_and_names_the_setting(machine_tree):
    """A distribution's level 3 forbids everything to users."""
    found = judged("perf stat", context(machine_tree("zen3-vm")))
    assert not found.usable
    assert "sudo sysctl kernel.perf_event_paranoid=1" in found.remedy


def test_small_mmap_limit(machine_tree):
    """perf record needs locked buffers; smaller ones do, at the price of lost samples."""
    tree = machine_tree("amx-vm", _paranoid("1") | {"proc/sys/kernel/perf_event_mlock_kb": "64"})
    found = judged("perf record", context(tree))
    assert (found.usable, found.remedy) == (True, "sudo sysctl kernel.perf_event_mlock_kb=516")
    assert "perf_event_mlock_kb is 64: smaller buffers" in found.reason


def test_perf_record_without_a_pmu_says_what_it_samples(machine_tree):
    """perf silently records the CPU clock; the doctor tells."""
    found = judged("perf record", context(machine_tree("amx-vm", _paranoid("1"))))
    assert (found.usable, found.reason) == (
        True,
        "samples the CPU clock only, no hardware events",
    )


def test_vtune_is_for_x86(machine_tree):
    """Nothing to install on Arm."""
    found = judged("VTune", context(machine_tree("neoverse-v1")))
    assert (found.usable, found.remedy) == (False, "")


def test_vtune_not_installed(machine_tree):
    """Where it comes from."""
    found = judged("VTune", context(machine_tree("spr-metal")))
    assert not found.usable
    assert "intel-oneapi-vtune" in found.remedy


@pytest.mark.parametrize(
    ("scope", "privileged", "usable"), [("1", False, False), ("1", True, True), ("0", False, True)]
)
def test_vtune_and_ptrace_scope(scope, privileged, usable, machine_tree, monkeypatch):
    """Attaching needs ptrace_scope 0, or root."""
    monkeypatch.setattr(profilers, "ask", lambda *_: "Intel(R) VTune(TM) Profiler 2024.1.0")
    tree = machine_tree("spr-metal", {"proc/sys/kernel/yama/ptrace_scope": scope})
    found = judged("VTune", context(tree, which=lambda _: "/bin/vtune", privileged=privileged))
    assert (found.usable, found.version) == (usable, "2024.1.0")


def test_gprof_needs_a_build(machine_tree, monkeypatch):
    """The tool alone is not enough."""
    monkeypatch.setattr(profilers, "ask", lambda *_: "GNU gprof (GNU Binutils) 2.40")
    tree = machine_tree("amx-vm")
    with_build = judged("gprof", context(tree, which=lambda _: "/bin/gprof"))
    without = judged("gprof", context(tree, which=lambda _: "/bin/gprof", build=None))
    assert (with_build.usable, with_build.version, without.usable) == (True, "2.40", False)


def test_bare_install_line_becomes_the_distributions(machine_tree, monkeypatch):
    """valgrind on Fedora's family is installed by dnf."""
    monkeypatch.setattr(
        profilers.callgrind, "availability",
        lambda: profilers.unusable("valgrind is not installed", "apt install valgrind"),
    )  # fmt: skip
    found = judged("callgrind", context(machine_tree("neoverse-v1")))
    assert found.remedy == "sudo dnf install valgrind valgrind-devel"


@pytest.mark.parametrize(
    ("distribution", "tool", "line"),
    [
        (("debian",), "perf", "apt install linux-perf"),
        (("ubuntu", "debian"), "perf", "apt install linux-tools-6.8.0"),
        (("amzn", "fedora"), "compiler", "dnf install gcc-c++"),
        (("opensuse-leap", "suse"), "binutils", "zypper install binutils"),
        (("arch",), "perf", "pacman -S perf"),
        (("alpine",), "compiler", "apk add g++ musl-dev"),
        (("nixos",), "llvm", "install the package llvm of your distribution"),
        ((), "compiler",
         "install the package g++ or gcc-c++ or gcc or g++ musl-dev of your distribution"),
    ],
)  # fmt: skip
def test_install_lines(distribution, tool, line):
    """One line for each family, names to try for an unknown one."""
    assert install_line(tool, distribution, "6.8.0") == line


def test_family_by_relatives():
    """ID_LIKE decides for a distribution that is not listed by itself."""
    assert family(("popos", "ubuntu", "debian")) == "debian"


def _paranoid(value):
    return {"proc/sys/kernel/perf_event_paranoid": value}


@pytest.mark.parametrize(("paranoid", "driver"), [("2", True), ("0", False)])
def test_vtune_and_its_sampling_driver(paranoid, driver, machine_tree, monkeypatch):
    """Analyses by hardware events need the driver, or perf's permission in its place."""
    monkeypatch.setattr(profilers, "ask", lambda *_: "Intel(R) VTune(TM) Profiler 2024.1.0")
    settings = _paranoid(paranoid) | {"proc/sys/kernel/yama/ptrace_scope": "0"}
    tree = machine_tree("spr-metal", settings)
    found = judged("VTune", context(tree, which=lambda _: "/bin/vtune"))
    assert found.usable
    assert ("insmod-sep" in found.remedy) == driver
