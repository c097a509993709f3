"""Which perf arguments are tried on which machine, and why none is."""

from __future__ import annotations

import pytest

from moe_prof.collectors.perf_topdown_plan import Facts, attempts
from moe_prof.errors import UnavailableError

SLOTS = frozenset(
    {"slots", "topdown-retiring", "topdown-bad-spec", "topdown-fe-bound", "topdown-be-bound"}
)
DEEP = SLOTS | {"topdown-heavy-ops", "topdown-br-mispredict", "topdown-fetch-lat",
                "topdown-mem-bound"}  # fmt: skip
OLD = frozenset({"topdown-total-slots", "topdown-slots-issued"})
NONE: frozenset[str] = frozenset()


def intel(events: frozenset[str], version: tuple[int, int] = (6, 1), **more: object) -> Facts:
    """An Intel machine with one core PMU."""
    return Facts("GenuineIntel", version, {"cpu": events}, **more)  # type: ignore[arg-type]


def amd(core: str, version: tuple[int, int]) -> Facts:
    """An AMD machine."""
    return Facts("AuthenticAMD", version, {"cpu": frozenset({"cycles"})}, core)


def test_sapphire_rapids_counts_slots_to_level_2() -> None:
    """One group led by slots, then perf's own analysis."""
    first, second = attempts(intel(DEEP))

    assert first.args == (
        "-e",
        "{slots,topdown-retiring,topdown-bad-spec,topdown-fe-bound,topdown-be-bound,"
        "topdown-heavy-ops,topdown-br-mispredict,topdown-fetch-lat,topdown-mem-bound}",
    )
    assert (first.level, first.system_wide) == (2, False)
    assert second.args == ("--topdown", "--td-level", "2")


def test_ice_lake_reaches_level_1() -> None:
    """Without topdown-heavy-ops only level 1 is asked for."""
    first, second = attempts(intel(SLOTS))

    assert (first.args[1].count("topdown-"), first.level) == (4, 1)
    assert second.args == ("--topdown",)


def test_level_1_on_request() -> None:
    """Fewer counters when level 1 is enough."""
    assert attempts(intel(DEEP), level=1)[0].level == 1


def test_hybrid_cpu_counts_its_performance_cores() -> None:
    """Events are spelled with their PMU, and the gap is said."""
    facts = Facts("GenuineIntel", (6, 8), {"cpu_core": DEEP, "cpu_atom": NONE})
    first = attempts(facts)[0]

    assert first.args[1].startswith("{cpu_core/slots/,cpu_core/topdown-retiring/,")
    assert first.note == "efficiency cores are not counted"


def test_new_perf_falls_back_level_by_level() -> None:
    """From 6.4 on --topdown works through metric files."""
    assert [a.args for a in attempts(intel(OLD, (6, 12)))] == [
        ("--topdown", "--td-level", "2"),
        ("--topdown", "--td-level", "1"),
    ]


def test_old_intel_needs_all_processes() -> None:
    """Before Ice Lake slots are counted per core."""
    (only,) = attempts(intel(OLD, paranoid=0))

    assert (only.args, only.system_wide) == (("--topdown", "-a"), True)


def test_old_intel_without_permission() -> None:
    """The message names the setting and the command."""
    with pytest.raises(UnavailableError, match="perf_event_paranoid is 2: sudo sysctl"):
        attempts(intel(OLD, paranoid=2))


def test_intel_without_slot_events() -> None:
    """An old perf on a PMU without slot events."""
    with pytest.raises(UnavailableError, match=r"perf 6\.1 has no metrics for it; use perf 6\.4"):
        attempts(intel(NONE))


@pytest.mark.parametrize(("core", "version"), [("zen4", (6, 2)), ("zen5", (6, 10))])
def test_amd_metrics_then_raw_counts(core: str, version: tuple[int, int]) -> None:
    """The metric groups where perf knows them."""
    first, second = attempts(amd(core, version))

    assert first.args == ("-M", "PipelineL1,PipelineL2")
    assert second.args[0] == "-e"


def test_amd_with_an_old_perf_uses_event_codes() -> None:
    """Debian's perf 6.1 on Zen 4: the counts behind the metrics, under perf's names."""
    (only,) = attempts(amd("zen4", (6, 1)))

    assert "cpu/event=0x1a0,umask=0x1e,name=de_no_dispatch_per_slot.backend_stalls/" in only.args[1]
    assert "cpu/event=0x1a0,umask=0x1,cmask=0x6/" in only.args[1]
    assert only.slots_per_cycle == 6


@pytest.mark.parametrize("core", ["zen1", "zen2", "zen3", ""])
def test_amd_before_zen4_has_none(core: str) -> None:
    """No dispatch-slot counters."""
    with pytest.raises(UnavailableError, match="does not count dispatch slots; Zen 4 and later do"):
        attempts(amd(core, (6, 12)))


def test_arm_needs_slot_stalls() -> None:
    """Neoverse V1 has them, N1 has not."""
    v1 = {"armv8_pmuv3_0": frozenset({"stall_slot_backend", "cpu_cycles"})}
    n1 = {"armv8_pmuv3_0": frozenset({"stall_backend", "cpu_cycles"})}

    assert attempts(Facts("ARM", (6, 8), v1))[0].args == ("-M", "TopdownL1")
    with pytest.raises(UnavailableError, match="no stall_slot events"):
        attempts(Facts("ARM", (6, 8), n1, core="neoverse-n1"))


def test_risc_v_has_none() -> None:
    """Counters work, top-down does not."""
    with pytest.raises(UnavailableError, match="no top-down counters are known for RISC-V"):
        attempts(Facts("RISC-V", (6, 8), {"cpu": NONE}))


def test_virtual_machine_without_pmu() -> None:
    """The reason and the way out."""
    with pytest.raises(UnavailableError, match="this virtual machine offers no CPU PMU"):
        attempts(Facts("GenuineIntel", (6, 1), {}, hypervisor="QEMU/KVM"))
