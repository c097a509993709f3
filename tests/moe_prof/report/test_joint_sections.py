"""Sections that other commands' analyses fill: explanations, comparison, roofline."""

from __future__ import annotations

import re

from moe_prof.report import read_material, render
from moe_prof.report.parts import Missing
from moe_prof.report.sections import comparison, explanations, roofline
from tests.moe_prof.report import made_sessions as made
from tests.moe_prof.report.html_reading import broken_rules


def test_findings_link_to_their_evidence(tmp_path):
    """Each has evidence, and what is listed on the page is a link to it."""
    folder = made.save(tmp_path / "s", "topdown", made.timing_rows() + made.topdown_rows())
    material = read_material([folder])
    context = explanations.make(material)
    assert not isinstance(context, Missing)
    told = [one for _, group in context["groups"] for one in group]
    assert all(one.evidence for one in told)
    assert any(cell.anchor for one in told for cell in one.evidence)
    html = render(material).html
    assert broken_rules(html) == []
    section = html.partition('id="explanations"')[2].partition("</section>")[0]
    assert re.search(r'href="#s1-r\d+"', section)


def test_sessions_without_evidence_are_not_explained(tmp_path):
    """No rule speaks without rows."""
    material = read_material([made.save(tmp_path / "s", "bench", [])])
    assert isinstance(explanations.make(material), Missing)


def test_one_session_is_compared_with_none(tmp_path):
    """And the page says how to compare."""
    context = comparison.make(
        read_material([made.save(tmp_path / "s", "bench", made.timing_rows())])
    )
    assert isinstance(context, Missing)
    assert "an earlier one before it" in context.reason


def test_the_first_session_is_the_old_one(tmp_path):
    """Ratios are new over old."""
    stages = {"scalar": 4e-3, "packed": 2e-4}
    old = made.save(tmp_path / "old", "bench", made.timing_rows())
    new = made.save(tmp_path / "new", "bench", made.timing_rows(stages))
    context = comparison.make(read_material([old, new]))
    assert not isinstance(context, Missing)
    (part,) = context["parts"]
    rows = {row[0].text: [cell.text for cell in row] for row in part.tables[0].rows}
    assert rows["packed"][1:4] == ["100 us", "200 us", "2.000"]


def test_runs_that_differ_are_not_compared(tmp_path):
    """What differs is named instead."""
    rows = made.timing_rows()
    old = made.save(tmp_path / "old", "bench", rows)
    other = made.MACHINE | {"model_name": "Other CPU"}
    new = made.save(tmp_path / "new", "bench", rows, machine=other)
    context = comparison.make(read_material([old, new]))
    assert not isinstance(context, Missing)
    (part,) = context["parts"]
    assert not part.tables
    assert "Other CPU" in part.notes[0]


def test_roofline_shows_points_and_ceilings(tmp_path):
    """A figure where there are points, tables of both."""
    material = read_material(made.save_all(tmp_path)[:1])
    context = roofline.make(material)
    assert not isinstance(context, Missing)
    (part,) = context["parts"]
    assert [table.caption for table in part.tables][-1] == "Ceilings measured on this machine"
