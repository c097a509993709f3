"""Facts read from recorded file trees of six machines, and from this one."""

from __future__ import annotations

import json

import pytest

from moe_prof import machine

KIB = 1 << 10
MIB = 1 << 20

EXPECTED = {
    "amx-vm": {
        "architecture": "x86_64", "core": "graniterapids", "usable": 2, "pmu": False, "smt": False,
        "cores": 2, "sockets": 1, "nodes": 1, "container": "docker", "hypervisor": "unknown",
        "quota": None, "governors": (), "turbo": None, "paranoid": 2, "ptrace": None,
        "hugepages": "madvise", "distribution": ("debian",),
    },
    "zen3-vm": {
        "architecture": "x86_64", "core": "zen3", "usable": 2, "pmu": False, "smt": False,
        "cores": 2, "sockets": 1, "nodes": 1, "container": None, "hypervisor": "QEMU/KVM",
        "quota": None, "governors": (), "turbo": None, "paranoid": 3, "ptrace": 1,
        "hugepages": "madvise", "distribution": ("ubuntu", "debian"),
    },
    "spr-metal": {
        "architecture": "x86_64", "core": "sapphirerapids", "usable": 4, "pmu": True, "smt": True,
        "cores": 4, "sockets": 2, "nodes": 2, "container": None, "hypervisor": None,
        "quota": None, "governors": ("powersave",), "turbo": True, "paranoid": 4, "ptrace": 1,
        "hugepages": "always", "distribution": ("ubuntu", "debian"),
    },
    "neoverse-v1": {
        "architecture": "aarch64", "core": "neoverse-v1", "usable": 4, "pmu": True, "smt": False,
        "cores": 4, "sockets": 1, "nodes": 1, "container": None, "hypervisor": None,
        "quota": None, "governors": (), "turbo": None, "paranoid": 2, "ptrace": None,
        "hugepages": "madvise", "distribution": ("amzn", "fedora"),
    },
    "spacemit-k1": {
        "architecture": "riscv64", "core": "spacemit-x60", "usable": 8, "pmu": True, "smt": False,
        "cores": 8, "sockets": 1, "nodes": 1, "container": None, "hypervisor": None,
        "quota": None, "governors": ("performance",), "turbo": None, "paranoid": 2, "ptrace": None,
        "hugepages": "madvise", "distribution": ("bianbu", "debian"),
    },
    "quota-container": {
        "architecture": "x86_64", "core": "zen2", "usable": 2, "pmu": True, "smt": True,
        "cores": 2, "sockets": 1, "nodes": 1, "container": "kubepods", "hypervisor": None,
        "quota": 1.5, "governors": (), "turbo": None, "paranoid": 2, "ptrace": None,
        "hugepages": "madvise", "distribution": ("alpine",),
    },
}  # fmt: skip


@pytest.mark.parametrize("name", EXPECTED)
def test_facts_of_each_recorded_machine(name, machine_tree):
    """Identity, topology, limits and settings come out as recorded."""
    facts = machine.read(machine_tree(name))
    assert {
        "architecture": facts.architecture,
        "core": facts.microarchitecture.name if facts.microarchitecture else None,
        "usable": facts.usable_cpus(),
        "pmu": facts.has_pmu,
        "smt": facts.topology.smt,
        "cores": facts.topology.cores,
        "sockets": facts.topology.sockets,
        "nodes": facts.topology.numa_nodes,
        "container": facts.limits.container,
        "hypervisor": facts.limits.hypervisor,
        "quota": facts.limits.cpu_quota,
        "governors": facts.system.governors,
        "turbo": facts.system.turbo,
        "paranoid": facts.system.perf_event_paranoid,
        "ptrace": facts.system.ptrace_scope,
        "hugepages": facts.system.transparent_hugepages,
        "distribution": facts.system.distribution,
    } == EXPECTED[name]


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("amx-vm", (48 * KIB, 2 * MIB, 480 * MIB)),
        ("zen3-vm", (32 * KIB, 512 * KIB, 32 * MIB)),
        ("spr-metal", (48 * KIB, 2 * MIB, 105 * MIB)),
        ("spacemit-k1", (32 * KIB, 512 * KIB, None)),
        ("quota-container", (None, None, None)),
    ],
)
def test_data_caches(name, sizes, machine_tree):
    """The data cache of each level, None for a level that the machine does not show."""
    facts = machine.read(machine_tree(name))
    found = tuple(facts.cache(level) for level in (1, 2, 3))
    assert tuple(cache.size_bytes if cache else None for cache in found) == sizes


def test_cache_details(machine_tree):
    """Ways, line and sharing are read beside the size."""
    cache = machine.read(machine_tree("spr-metal")).cache(2)
    assert cache == machine.Cache(2, "Unified", 2 * MIB, 16, 64, (0, 4))


def test_masked_model_is_inferred_and_said(machine_tree):
    """A hypervisor's made-up model is overruled by flags that it could not have."""
    basis = machine.read(machine_tree("amx-vm")).processor.identification.basis
    assert basis == (
        "inferred from features (amx_int8, 64 KiB L1I): family 6 model 167 would be rocketlake, "
        "which has no amx_int8"
    )


def test_memory_limit_of_the_tightest_group(machine_tree):
    """In a container the mounted root is its own group."""
    assert machine.read(machine_tree("quota-container")).limits.memory_limit_bytes == 2 << 30


def test_largest_number_of_version_1_is_no_limit(machine_tree):
    """Version 1 spells 'no limit' as a huge number."""
    assert machine.read(machine_tree("amx-vm")).limits.memory_limit_bytes is None


def test_quota_of_a_parent_group_counts(machine_tree):
    """Limits add up along the path: the parent's is tighter here."""
    tree = machine_tree(
        "spr-metal",
        {
            "sys/fs/cgroup/user.slice/cpu.max": "50000 100000",
            "sys/fs/cgroup/user.slice/user-1000.slice/cpu.max": "300000 100000",
        },
    )
    facts = machine.read(tree)
    assert (facts.limits.cpu_quota, facts.usable_cpus()) == (0.5, 1)


def test_quota_of_version_1(machine_tree):
    """Version 1 gives quota and period in two files."""
    tree = machine_tree("amx-vm", {"sys/fs/cgroup/cpu/cpu.cfs_quota_us": "120000"})
    assert machine.read(tree).limits.cpu_quota == 1.2


def test_core_for_the_interval_model(machine_tree):
    """Width, penalty and L2 latency of a known core."""
    core = machine.read(machine_tree("zen3-vm")).core()
    assert (core.name, core.width, core.mispredict_penalty_cycles, core.l2_latency_cycles) == (
        "zen3", 6, 13, 12,
    )  # fmt: skip


def test_no_core_where_a_figure_is_unknown(machine_tree):
    """A board whose L2 latency nobody published gives no model, not a guess."""
    assert machine.read(machine_tree("spacemit-k1")).core() is None


def test_empty_tree_is_unknown_not_an_error(tmp_path):
    """Nothing readable: everything unknown, one usable CPU."""
    facts = machine.read(tmp_path)
    assert (facts.microarchitecture, facts.caches, facts.usable_cpus()) == (None, (), 1)


@pytest.mark.parametrize("name", EXPECTED)
def test_machine_object_is_json(name, machine_tree):
    """as_dict holds JSON types only and names the usable CPUs."""
    facts = machine.read(machine_tree(name))
    assert json.loads(json.dumps(facts.as_dict())) == facts.as_dict()


def test_this_machine_can_be_read():
    """The real tree: at least one usable CPU and an architecture."""
    facts = machine.read()
    assert facts.usable_cpus() >= 1
    assert facts.architecture
