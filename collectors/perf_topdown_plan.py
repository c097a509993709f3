"""Which ``perf stat`` arguments give top-down figures on a machine: a pure function of its facts.

The order of attempts: Intel's slot counts where the kernel lists them (any thread, level 2 where
``topdown-heavy-ops`` exists), then perf's own ``--topdown``; AMD's pipeline metrics or, with a perf
that does not know them, the raw counts behind them; Arm's metric group.

Source: the kernel's ``tools/perf/Documentation/topdown.txt``, perf's release history (JSON metrics
behind ``--topdown`` since 6.4, Zen 4 pipeline metrics since 6.2, Zen 5 since 6.10), AMD PPR for
family 19h model 11h and 1Ah (event codes).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from moe_prof.errors import UnavailableError

INTEL, AMD = "GenuineIntel", "AuthenticAMD"

_SLOTS_L1 = (
    "slots",
    "topdown-retiring",
    "topdown-bad-spec",
    "topdown-fe-bound",
    "topdown-be-bound",
)
_SLOTS_L2 = ("topdown-heavy-ops", "topdown-br-mispredict", "topdown-fetch-lat", "topdown-mem-bound")
_JSON_TOPDOWN = (6, 4)
_AMD_METRICS = {"zen4": (6, 2), "zen5": (6, 10)}
_AMD_WIDTHS = {"zen4": 6, "zen5": 8}
_ARM_METRICS = (6, 1)

# (perf's name, event code, unit mask); the counter mask for fetch latency is the dispatch width
_AMD_L1 = (
    ("ls_not_halted_cyc", 0x76, 0x00),
    ("ex_ret_ops", 0xC1, 0x00),
    ("de_src_op_disp.all", 0xAA, 0x07),
    ("de_no_dispatch_per_slot.no_ops_from_frontend", 0x1A0, 0x01),
    ("de_no_dispatch_per_slot.backend_stalls", 0x1A0, 0x1E),
    ("de_no_dispatch_per_slot.smt_contention", 0x1A0, 0x60),
)
_AMD_L2 = (
    ("ex_no_retire.load_not_complete", 0xD6, 0xA2),
    ("ex_no_retire.not_complete", 0xD6, 0x02),
    ("ex_ret_brn_misp", 0xC3, 0x00),
    ("ex_ret_ucode_ops", 0x1C1, 0x00),
)


@dataclass(frozen=True, slots=True)
class Facts:
    """What the choice depends on.

    Attributes:
        vendor: CPU vendor as the kernel names it, ``ARM`` for Arm's cores.
        core: the project's name of the core (``zen4``, ``sapphirerapids``), "" if unknown.
        perf_version: (6, 1) for perf 6.1.
        events: names under ``events/`` of each core PMU in sysfs, by PMU.
        paranoid: kernel.perf_event_paranoid, None if unknown.
        privileged: root or CAP_PERFMON.
        hypervisor: its name in a virtual machine, else None.
    """

    vendor: str
    perf_version: tuple[int, int]
    events: Mapping[str, frozenset[str]] = field(default_factory=dict)
    core: str = ""
    paranoid: int | None = None
    privileged: bool = False
    hypervisor: str | None = None


@dataclass(frozen=True, slots=True)
class Attempt:
    """One way to ask: arguments for ``perf stat`` and what they give.

    Attributes:
        args: without output form, control fifo and command.
        level: deepest level to expect.
        system_wide: counts all processes on all CPUs, not only the workload.
        slots_per_cycle: width to pass to ``perf_topdown.nodes``.
        note: a limit of the figures.
    """

    args: tuple[str, ...]
    level: int
    system_wide: bool = False
    slots_per_cycle: int | None = None
    note: str = ""


def attempts(facts: Facts, level: int = 2) -> tuple[Attempt, ...]:
    """The ways to ask for top-down figures up to ``level``, best first.

    A later one is for the case that perf refuses the earlier one or prints no node.

    Raises:
        UnavailableError: there is no way on this machine; the message says why.
    """
    if not facts.events:
        where = "this virtual machine" if facts.hypervisor else "this machine"
        raise UnavailableError(
            f"no top-down counters: {where} offers no CPU PMU (nothing under "
            "/sys/bus/event_source/devices counts for the core); run on bare metal or have the "
            "hypervisor pass the PMU through"
        )
    if facts.vendor == INTEL:
        found = _intel(facts, level)
    elif facts.vendor == AMD:
        found = _amd(facts, level)
    elif facts.vendor.upper() == "ARM" or any(pmu.startswith("armv") for pmu in facts.events):
        found = _arm(facts)
    else:
        raise UnavailableError(
            f"no top-down counters are known for {facts.vendor or 'this CPU'}; "
            "counters (cycles, instructions, misses) still work"
        )
    return found


def _intel(facts: Facts, level: int) -> tuple[Attempt, ...]:
    found = [
        attempt
        for pmu in ("cpu", "cpu_core")
        if (attempt := _intel_slots(pmu, facts, level)) is not None
    ]
    listed = frozenset().union(*facts.events.values())
    old_counts = "topdown-total-slots" in listed
    if facts.perf_version >= _JSON_TOPDOWN:
        found += [
            Attempt(("--topdown", "--td-level", str(deep)), deep) for deep in range(level, 0, -1)
        ]
    elif found:
        reach = found[0].level
        option = ("--td-level", "2") if reach == 2 else ()
        found.append(Attempt(("--topdown", *option), reach))
    elif old_counts and _may_count_all(facts):
        note = "counted per core for all processes: keep the machine quiet"
        found.append(Attempt(("--topdown", "-a"), 1, system_wide=True, note=note))
    if found:
        return tuple(found)
    if old_counts:
        raise UnavailableError(
            "this CPU counts slots per core only, which needs counting all processes (perf stat "
            f"-a); kernel.perf_event_paranoid is {facts.paranoid}: "
            "sudo sysctl kernel.perf_event_paranoid=0, or grant CAP_PERFMON"
        )
    raise UnavailableError(
        "the CPU PMU lists no slots or topdown-* events "
        f"and perf {_text(facts.perf_version)} has no metrics for it; use perf 6.4 or newer"
    )


def _intel_slots(pmu: str, facts: Facts, level: int) -> Attempt | None:
    listed = facts.events.get(pmu, frozenset())
    if not set(_SLOTS_L1) <= listed:
        return None
    deep = level >= 2 and set(_SLOTS_L2) <= listed
    names = _SLOTS_L1 + _SLOTS_L2 if deep else _SLOTS_L1
    spelled = names if pmu == "cpu" else tuple(f"{pmu}/{name}/" for name in names)
    note = "efficiency cores are not counted" if pmu != "cpu" else ""
    # slots must lead the group: the kernel derives the others from it
    return Attempt(("-e", "{" + ",".join(spelled) + "}"), 2 if deep else 1, note=note)


def _amd(facts: Facts, level: int) -> tuple[Attempt, ...]:
    width = _AMD_WIDTHS.get(facts.core)
    if width is None:
        known = f"this core ({facts.core})" if facts.core else "this AMD core"
        raise UnavailableError(
            f"no top-down counters: {known} does not count dispatch slots; Zen 4 and later do"
        )
    found = []
    if facts.perf_version >= _AMD_METRICS[facts.core]:
        groups = "PipelineL1,PipelineL2" if level >= 2 else "PipelineL1"
        found.append(Attempt(("-M", groups), min(level, 2), slots_per_cycle=width))
    events = [_raw(*event) for event in _AMD_L1]
    if level >= 2:
        events += [_raw(*event) for event in _AMD_L2]
        restarts = "resyncs_or_nc_redirects" if width == 6 else "bp_redirects.resync"
        events.append(_raw(restarts, 0x96 if width == 6 else 0x9F, 0x00 if width == 6 else 0x01))
        events.append(f"cpu/event=0x1a0,umask=0x1,cmask=0x{width:x}/")
    note = "raw event codes; the counters are multiplexed" if level >= 2 else "raw event codes"
    found.append(Attempt(("-e", ",".join(events)), min(level, 2), slots_per_cycle=width, note=note))
    return tuple(found)


def _arm(facts: Facts) -> tuple[Attempt, ...]:
    listed = frozenset().union(*facts.events.values())
    if not any(name.startswith("stall_slot") for name in listed):
        core = facts.core or "this Arm core"
        raise UnavailableError(
            f"no top-down counters: {core} has no stall_slot events (Neoverse N1 and earlier cores "
            "count stalled cycles only)"
        )
    if facts.perf_version < _ARM_METRICS:
        raise UnavailableError(
            f"perf {_text(facts.perf_version)} has no TopdownL1 for Arm; use perf 6.1 or newer"
        )
    return (Attempt(("-M", "TopdownL1"), 1, note="Arm's level 2 is not in slots"),)


def _raw(name: str, code: int, mask: int) -> str:
    return f"cpu/event=0x{code:x},umask=0x{mask:x},name={name}/"


def _may_count_all(facts: Facts) -> bool:
    return facts.privileged or (facts.paranoid is not None and facts.paranoid <= 0)


def _text(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"
