"""The text of ``topdown`` from hand-made rows."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from moe_prof.analysis.work import count_work
from moe_prof.kernels import PHASES
from moe_prof.kernels.table import BY_NAME
from moe_prof.machine import read
from moe_prof.model.interval import NODES
from moe_prof.render import topdown_report
from moe_prof.render.topdown_report import Report
from moe_prof.rows import Row, unavailable
from moe_prof.scenario import Scenario
from tests.moe_prof.topdown.made import row

MARKUP = "./[bold]mine[/bold].so"
NO_PMU = "this virtual machine (kvm) has no CPU PMU"


def stage(name: str, time_s: float = 123e-6) -> list[Row]:
    """All rows that the text shows of a variant, as wide as they get."""
    marked = {"variant": name, "provenance": "modelled"}
    texts = {
        "isa": "portable",
        "verdict": "dram_bandwidth_bound",
        "verdict_evidence": "Memory_Bound 72.3 % of slots; the weights live in the memory",
        "verdict_advice": "read each weight once: group tokens by expert",
    }
    values = {
        "threads": 128.0, "time": time_s, "time_ci_low": 0.9 * time_s, "time_ci_high": 2 * time_s,
        "speedup": 1234.5, "speedup_over_autovec": 100.1, "spin_fraction": 0.123,
        "rel_rmse": 9.1e-8,
    }  # fmt: skip
    return [
        *(row(metric, None, name, source=text) for metric, text in texts.items()),
        *(row(metric, value, name) for metric, value in values.items()),
        row("roofline_fraction", 1.05, status="out_of_bounds", **marked),
        row("roofline_fraction_path", 0.999, **marked),
        *(row(node, 0.999, level=level, unit="slots", **marked) for node, level in NODES),
        row("IPC", 10.27, status="out_of_bounds", **marked),
        row("instructions_per_mac", 12.345, name, provenance="simulated"),
        *(row("phase_time", 1.0, name, phase=phase) for phase in PHASES),
    ]


def report(variants=tuple(BY_NAME), rows=None, **changes) -> Report:
    """A report of S3 with every built-in variant."""
    scenario = Scenario(128, 256, 128, 16, 4, "S3")
    if rows is None:
        rows = [made for name in variants for made in stage(name)]
    made = Report(
        scenario=scenario, counts=count_work(scenario), machine=read(), threads=2,
        variants=tuple(variants), rows=rows, reason=NO_PMU, notes=(),
    )  # fmt: skip
    return replace(made, **changes)


def shown(made: Report, width: int = 100) -> str:
    """The page."""
    out = io.StringIO()
    console = Console(file=out, width=width, no_color=True, highlight=False)
    console.print(topdown_report.body(made))
    return out.getvalue()


def joined(made: Report) -> str:
    """The page with lines joined, for texts that wrap."""
    return " ".join(shown(made).split())


def test_it_fits_100_columns():
    """Every built-in variant with wide figures: no longer line and no cell cut off."""
    page = shown(report())
    assert max(map(len, page.splitlines())) <= 100
    assert "…" not in page
    assert [name for name in BY_NAME if page.count(f"\n{name} ") < 4] == []


def test_it_survives_60_columns():
    """A narrow terminal gets a page, too."""
    assert max(map(len, shown(report(), 60).splitlines())) <= 60


def test_the_answer_comes_first():
    """The fastest variant with its time, speedup, roofline and verdict before any table."""
    rows = [*stage("scalar", 2e-3), *stage("packed", 1e-3)]
    page = joined(report(("scalar", "packed"), rows))
    assert page.index("Fastest here is packed: 1.00 ms a forward") < page.index("Stages")
    assert "1234 times scalar" in page
    assert "It is dram bandwidth bound: Memory_Bound 72.3 % of slots" in page
    assert "Next: read each weight once" in page


def test_an_unknown_cause_is_not_called_a_cause():
    """The evidence then says what is missing."""
    rows = [*stage("scalar"), row("verdict", None, source="unknown")]
    assert "What bounds it could not be told: Memory_Bound" in joined(report(("scalar",), rows))


def test_scalar_alone_is_not_compared_with_itself():
    """No '1.00 times scalar'."""
    assert "times scalar" not in joined(report(("scalar",)))


def test_nothing_timed():
    """The answer says so; each variant's reason stands below."""
    rows = [unavailable("time", "s", "wrong result", collector="t", variant="scalar")]
    page = joined(report(("scalar",), rows))
    assert "No variant could be timed" in page
    assert "scalar: wrong result" in page


def test_the_error_is_that_of_the_timed_variants():
    """A wrong variant's error is its reason, not the proof of the others."""
    wrong = [unavailable("time", "s", "wrong", collector="t", variant="packed")]
    rows = [*stage("scalar"), *wrong, row("rel_rmse", 0.5, "packed")]
    assert "relative RMSE 9.1e-08 at most" in joined(report(("scalar", "packed"), rows))


def test_modelled_slots_say_why():
    """The reason and what modelled means."""
    page = joined(report())
    assert "Issue slots, modelled" in page
    assert f"Not measured because {NO_PMU}" in page


def test_measured_slots_need_no_excuse():
    """No word about the model."""
    page = joined(report(reason=""))
    assert "Issue slots, measured" in page
    assert "Not measured" not in page


def test_the_heading_has_shape_and_work():
    """The scenario, its products and intensities."""
    page = joined(report())
    assert page.startswith("S3: N 128, D 256, H 128, E 16, K 4")
    assert "63.4 M multiply-accumulates a forward (0.8 % in the router)" in page
    assert "1.00 MAC/byte token by token, 37.6 grouped by expert" in page


def test_no_tokens_have_no_intensity():
    """N = 0 is a legal shape."""
    scenario = Scenario(0, 32, 32, 4, 2)
    page = joined(report(scenario=scenario, counts=count_work(scenario)))
    assert "0 multiply-accumulates a forward" in page
    assert "intensity" not in page


def test_an_unknown_core_is_said():
    """Without a name of its own."""
    machine = read()
    identification = replace(machine.processor.identification, core=None)
    unknown = replace(machine, processor=replace(machine.processor, identification=identification))
    assert "core unknown" in joined(report(machine=unknown))


def test_an_undivided_backend_says_why():
    """The reason once, with the variants that it concerns."""
    core = "Backend_Bound.Core_Bound"
    rows = [
        made
        for name in ("scalar", "packed")
        for made in (
            *stage(name),
            unavailable(core, "slots", "needs llvm-mca", collector="model", variant=name),
        )
    ]
    page = joined(report(("scalar", "packed"), rows))
    assert page.count("No memory and core of scalar, packed: needs llvm-mca") == 1


def test_notes_stand_at_the_end():
    """In order, as they are."""
    page = joined(report(notes=("first", "[red]second :warning: \\")))
    assert page.endswith("Note: first Note: [red]second :warning: \\")


def test_names_and_reasons_are_no_markup():
    """Brackets of a user's path, of evidence and of reasons are shown as they are."""
    rows = [*stage(MARKUP), row("verdict_evidence", None, MARKUP, source="[red]all[/red]")]
    page = joined(report((MARKUP,), rows, reason="[x] is no [/y]"))
    assert f"Fastest here is {MARKUP}" in page
    assert "[red]all[/red]" in page
    assert "Not measured because [x] is no [/y]" in page


@pytest.mark.parametrize("phases", [PHASES, ()])
def test_phases_are_a_section_where_there_are_any(phases):
    """No empty table."""
    rows = [r for r in stage("scalar") if r.metric != "phase_time" or r.phase in phases]
    assert ("Phases, share" in joined(report(("scalar",), rows))) == bool(phases)
