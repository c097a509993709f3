"""Points under the roofline, on an invented machine with round numbers."""

import pytest

from moe_prof.analysis.ceilings import Ceiling, Ceilings, best_of, missing, with_capacities
from moe_prof.analysis.roofline_points import points, rows
from moe_prof.rows import Row, unavailable

SCENARIO = "1,100,10,4,2"  # 400 router MACs of 1600 bytes; 9000 expert MACs of 9000 bytes
LABELS = {"scenario": SCENARIO, "variant": "packed", "collector": "builtin"}


def ceilings(threads=1, read=1000.0):
    """Everything fits into the L2: 1000 bytes/s; 3000 int8 MAC/s (avx2: 500), 100 fp32 MAC/s."""
    entries = [
        Ceiling("int8_amx_int8", threads, 3000.0, "MAC/s", "measured", ""),
        Ceiling("int8_avx2", threads, 500.0, "MAC/s", "measured", ""),
        Ceiling("fp32_avx2", threads, 100.0, "MAC/s", "measured", ""),
        Ceiling("read_l2", threads, read, "bytes/s", "measured", "", 1 << 20),
    ]
    return Ceilings(tuple(entries))


def measured(threads=1, time_s=26.0, **phases):
    """Rows of one variant; ``phases``: seconds by thread."""
    made = [
        Row(metric="time", value=time_s, unit="s", **LABELS),
        Row(metric="threads", value=float(threads), unit="1", **LABELS),
        Row(metric="isa", value=None, unit="1", source="avx2", **LABELS),
    ]
    for name, values in phases.items():
        made += [
            Row(metric="phase_time", value=v, unit="s", phase=name, thread=str(t), **LABELS)
            for t, v in enumerate(values)
        ]
        made.append(Row(metric="phase_time", value=sum(values), unit="s", phase=name, **LABELS))
    return made


def test_a_forward_stands_under_its_floor():
    """4 s of router and 9 s of reading make 13 s of floor: half of the 26 s that it took."""
    ((one,), reasons) = points(measured(), ceilings(), usable_cpus=1)
    assert reasons == ()
    assert (one.phase, one.threads, one.isa, one.level) == (None, 1, "avx2", "l2")
    assert one.fraction == pytest.approx(13 / 26)
    assert one.rate == pytest.approx(9400 / 26)
    assert one.intensity == pytest.approx(9400 / 10600)


def test_the_paths_own_roof_is_lower():
    """18 s of avx2 arithmetic instead of 9 s of reading."""
    ((one,), _) = points(measured(), ceilings(), usable_cpus=1)
    assert one.path_fraction == pytest.approx(22 / 26)


def test_phases_have_roofs_of_their_own():
    """The router's is fp32; gate_up has two thirds of the experts' work, down one third."""
    found, _ = points(
        measured(router=[8.0], gate_up=[12.0], down=[4.0], bucket=[1.0]),
        ceilings(), usable_cpus=1,
    )  # fmt: skip
    by_phase = {point.phase: point for point in found}
    assert list(by_phase) == [None, "router", "gate_up", "down"]
    assert (by_phase["router"].limit, by_phase["router"].fraction) == ("compute", 0.5)
    assert (by_phase["gate_up"].limit, by_phase["gate_up"].fraction) == ("memory", 0.5)
    assert by_phase["down"].fraction == pytest.approx(0.75)
    assert by_phase["down"].path_fraction == pytest.approx(1.5)


def test_a_phase_takes_as_long_as_its_slowest_thread():
    """Not as long as the sum, nor the mean."""
    found, _ = points(measured(2, gate_up=[12.0, 1.0]), ceilings(2), usable_cpus=2)
    assert found[1].rate == pytest.approx(6000 / 12)


def test_a_team_larger_than_the_machine_has_the_machines_ceilings():
    """Eight threads on two CPUs."""
    ((one,), _) = points(measured(8), ceilings(2), usable_cpus=2)
    assert one.threads == 2


@pytest.mark.parametrize(
    ("made", "words"),
    [
        ([unavailable("time", "s", "wrong result", **LABELS)], "packed: wrong result"),
        ([Row(metric="isa", value=None, unit="1", source="avx2", **LABELS)], "no time"),
        (measured(4), "no int8 ceiling of path any with 4 threads was measured"),
        ([Row(metric="time", value=1.0, unit="s", collector="t", variant="x")], "not known"),
    ],
)
def test_what_has_no_place_has_a_reason(made, words):
    """No time, no ceiling, no sizes."""
    found, reasons = points(made, ceilings(), usable_cpus=8)
    assert found == ()
    assert words in reasons[0]


def test_rows_of_points():
    """Intensity, rate, roof and fractions, by phase; a share above 1 is marked."""
    found, _ = points(measured(down=[2.0]), ceilings(), usable_cpus=1)
    made = {(row.metric, row.phase): row for row in rows(found)}
    assert made["intensity", None].unit == "MAC/byte"
    assert made["roofline_fraction", None].status == "ok"
    assert made["roofline_fraction", "down"].status == "out_of_bounds"
    assert made["macs_per_second", "down"].provenance == "measured"
    assert made["roof", "down"].provenance == "modelled"


def test_the_better_of_two_measurements_counts():
    """Higher rates, lower latencies, what one of them lacks, teams of either."""
    first = Ceilings((
        Ceiling("read_l2", 1, 10.0, "bytes/s", "measured", "a"),
        Ceiling("latency_l2", 1, 2.0, "s", "measured", "a"),
        missing("fp32_avx2", 1, "MAC/s", "no time"),
    ))  # fmt: skip
    second = Ceilings((
        Ceiling("read_l2", 1, 9.0, "bytes/s", "measured", "b"),
        Ceiling("latency_l2", 1, 1.0, "s", "measured", "b"),
        Ceiling("fp32_avx2", 1, 5.0, "MAC/s", "measured", "b"),
        Ceiling("read_l2", 2, 20.0, "bytes/s", "measured", "b"),
    ))  # fmt: skip
    best = best_of(first, second)
    assert [entry.value for entry in best.entries] == [10.0, 1.0, 5.0, 20.0]


def test_capacities_come_from_a_manifests_caches():
    """One L2 a core, one L3 for four; instruction caches hold no weights."""
    caches = [
        {"level": 1, "type": "Instruction", "size_bytes": 7, "shared_cpus": [0]},
        {"level": 2, "type": "Unified", "size_bytes": 100, "shared_cpus": [0]},
        {"level": 3, "type": "Unified", "size_bytes": 1000, "shared_cpus": [0, 1, 2, 3]},
    ]
    entries = tuple(
        Ceiling(name, 2, 1.0, "bytes/s", "measured", "")
        for name in ("read_l1", "read_l2", "read_l3")
    )
    found = with_capacities(Ceilings(entries), caches)
    assert [entry.capacity_bytes for entry in found.entries] == [None, 200, 1000]
