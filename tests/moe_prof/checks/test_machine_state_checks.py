"""State of recorded machines: good, or a warning with the command that changes it."""

from __future__ import annotations

import pytest

from moe_prof.checks import machine_state
from tests.moe_prof.checks.contexts import context

CHECKS = {check.name: check for check in machine_state.CHECKS}


@pytest.mark.parametrize(
    ("tree", "name", "usable", "reason"),
    [
        ("spr-metal", "governor", False, "powersave: clocks follow the load, timings scatter"),
        ("spacemit-k1", "governor", True, "performance"),
        ("zen3-vm", "governor", True, "no frequency control here: the host decides"),
        ("spr-metal", "SMT", False, "on: 8 CPUs are 4 cores, neighbours share ports"),
        ("zen3-vm", "SMT", True, "off, or hidden by the hypervisor"),
        ("spr-metal", "turbo", True, "on: clocks vary with temperature and neighbours"),
        ("spr-metal", "CPU quota", True, "no quota; 4 of 8 CPUs allowed by affinity"),
        ("zen3-vm", "caches", True, "L1 32 KiB, L2 512 KiB, L3 32 MiB"),
        ("quota-container", "memory", True, "2.0 GiB by a control group, of 30.5"),
        ("zen3-vm", "system", True, "virtual machine (QEMU/KVM), kernel 6.1.0-18-amd64"),
        ("spr-metal", "system", True, "bare metal, kernel 6.8.0-45-generic"),
        ("zen3-vm", "core", True, "zen3, 6 slots per cycle (family 25 model 1)"),
        ("zen3-vm", "other load", True, "load average 0.1"),
    ],
)
def test_state_of_recorded_machines(tree, name, usable, reason, machine_tree):
    """One line for each fact."""
    found = CHECKS[name].judge(context(machine_tree(tree)))
    assert (found.usable, found.reason) == (usable, reason)


def test_quota_names_threads_and_container_option(machine_tree):
    """1.5 CPUs: one thread fits without being throttled."""
    found = CHECKS["CPU quota"].judge(context(machine_tree("quota-container")))
    assert (found.usable, found.remedy) == (
        False,
        "--threads 1, or a larger quota (docker --cpus, Kubernetes limits.cpu)",
    )


def test_governor_command_needs_rights(machine_tree):
    """sudo for a user, none for root."""
    tree = machine_tree("spr-metal")
    remedies = [
        CHECKS["governor"].judge(context(tree, privileged=rights)).remedy
        for rights in (False, True)
    ]
    assert remedies == [
        "sudo cpupower frequency-set -g performance",
        "cpupower frequency-set -g performance",
    ]


def test_busy_machine_is_a_warning(machine_tree):
    """Other programs on the CPUs disturb timings."""
    assert not CHECKS["other load"].judge(context(machine_tree("zen3-vm"), load=3.0)).usable


def test_unknown_core_says_what_is_missing(machine_tree):
    """Without a row in the table there is no model."""
    cpuinfo = "vendor_id : HygonGenuine\ncpu family : 24\nmodel : 1\nflags : lm avx2\n"
    found = CHECKS["core"].judge(context(machine_tree("zen3-vm", {"proc/cpuinfo": cpuinfo})))
    assert (found.usable, found.reason) == (
        False,
        "CPU: unknown: HygonGenuine family 24 model 1 is not listed",
    )


def test_no_caches_shown(machine_tree):
    """Some virtual machines show none."""
    assert not CHECKS["caches"].judge(context(machine_tree("quota-container"))).usable
