"""What verdicts rest on: links for stages and for whole programs."""

from dataclasses import replace
from typing import get_args

import pytest

from moe_prof.analysis.verdict import Cause
from moe_prof.report import read_material
from moe_prof.report.parts import Missing
from moe_prof.report.sections import bounds
from tests.moe_prof.report import made_sessions as made
from tests.moe_prof.topdown.made import row


def links(folder, cause, figures):
    """The metrics that a program's verdict is linked to, with these figures in the session."""
    rows = [row(name, 1.0, "prog") for name in figures] + [
        row("verdict", None, "prog", source=cause)
    ]
    rows = [replace(one, scope="process") for one in rows]
    context = bounds.make(read_material([made.save(folder, "topdown", rows)]))
    assert not isinstance(context, Missing)
    (part,) = context["parts"]
    (cells,) = part.tables[0].rows
    return [name for name, _ in cells[-1].links]


@pytest.mark.parametrize("cause", get_args(Cause))
def test_a_programs_verdict_is_linked_to_its_figures(tmp_path, cause):
    """Of every cause, to those that the session has."""
    wanted = bounds.PROGRAM_RESTS_ON[cause]
    assert links(tmp_path / "all", cause, wanted) == list(wanted)
    assert links(tmp_path / "one", cause, wanted[:1]) == [wanted[0]]


def test_a_stages_verdict_is_linked_to_its_slots(tmp_path):
    """The figures of the forward loop."""
    rows = made.timing_rows() + made.topdown_rows()
    context = bounds.make(read_material([made.save(tmp_path / "s", "topdown", rows)]))
    assert not isinstance(context, Missing)
    cells = context["parts"][0].tables[0].rows[0]
    assert [name for name, _ in cells[-1].links] == ["Retiring"]
