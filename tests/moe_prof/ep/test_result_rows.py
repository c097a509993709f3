"""Rows of expert-parallel results, and what is printed and told of them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from moe_prof.analysis.query import RowIndex
from moe_prof.analysis.samples import timed
from moe_prof.commands.ep import troubles
from moe_prof.ep.cases import FUSED, SMALL_OPS
from moe_prof.ep.result_rows import EXPOSED_SHARE, OVERLAP, RATE, SHA256, SPEEDUP, case_rows
from moe_prof.ep.results import CaseResult
from moe_prof.explain import explain
from moe_prof.render.ep_view import ep_body
from moe_prof.report.material import material_of
from moe_prof.report.parts import Missing
from moe_prof.report.sections import expert_parallel
from tests.moe_prof.ep import made_results as made
from tests.moe_prof.explain.made import session


def rows_of(result, cpus=2):
    """The rows of a result."""
    return case_rows(result, usable_cpus=cpus)


def text_of(rows, width=100):
    """What the command prints."""
    console = Console(width=width, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    with console.file:
        console.print(ep_body(rows))
    return console.export_text()


def saved(result, cpus=2):
    """A session with the rows of a result."""
    return session(*rows_of(result, cpus), command="ep", machine={"usable_cpus": cpus})


def told(result, cpus=2):
    """Findings by rule."""
    return {one.rule: one for one in explain([saved(result, cpus)])}


def test_a_result_travels_as_json():
    """What rank 0 writes is read back."""
    result = made.result()
    assert CaseResult.from_json(json.loads(json.dumps(result.to_json()))) == result


def test_the_time_is_that_of_the_slowest_rank():
    """Median over rounds of the largest time of any rank, and tokens a second of it."""
    index = RowIndex(rows_of(made.result()))
    assert index.value(FUSED, "time") == pytest.approx(0.88e-3, rel=0.01)
    assert index.value(FUSED, RATE) == pytest.approx(16 / 0.88e-3, rel=0.01)


def test_the_speedup_is_paired_and_has_an_interval():
    """Small ops' time over the fused one, with both ends and the verdict in words."""
    index = RowIndex(rows_of(made.result()))
    assert index.value(FUSED, SPEEDUP) == pytest.approx(1.25, rel=0.01)
    low, high = (index.value(FUSED, f"{SPEEDUP}_ci_{end}") for end in ("low", "high"))
    assert 1.2 < low < 1.25 < high < 1.3
    assert index.text(FUSED, "comparison") == "faster"
    assert index.row(SMALL_OPS, SPEEDUP) is None


def test_other_commands_find_the_samples():
    """``compare`` reads process and round of each sample."""
    rows = [row for row in rows_of(made.result()) if row.variant == FUSED]
    found = timed(rows, "time")
    assert found.exact
    assert len(found.samples_s) == made.ROUNDS


def test_exposed_communication_is_of_a_rank_and_a_thread():
    """Waits of both ranks over their number, as a share of the call, and against small ops."""
    index = RowIndex(rows_of(made.result()))
    assert index.value(FUSED, EXPOSED_SHARE) == pytest.approx(0.15)
    assert index.value(FUSED, OVERLAP) == pytest.approx(1 - 0.8)
    assert index.row(SMALL_OPS, OVERLAP) is None


def test_a_wrong_variant_has_no_time_and_no_ratio():
    """It is told why, and the command fails."""
    wrong = made.variant(FUSED, 1e-3, wrong="rel RMSE 0.5", rel_rmse=0.5, worst_token=0.9)
    result = made.result(variants=(wrong, made.variant(SMALL_OPS, 1e-3)))
    index = RowIndex(rows_of(result))
    assert index.row(FUSED, "time").value is None
    assert index.row(FUSED, SPEEDUP).source == "rel RMSE 0.5"
    assert any("rel RMSE 0.5" in line for line in troubles([result]))


def test_outputs_that_differ_are_an_error():
    """Between variants, and between numbers of ranks for the same problem."""
    odd = made.variant(FUSED, 1e-3, sha256="cd" * 32)
    (line,) = troubles([made.result(variants=(odd, made.variant(SMALL_OPS, 1e-3)))])
    assert "fused, small_ops differ" in line
    one = made.result()
    alone = replace(made.CASE, ranks=1)
    other = made.result(case=alone, variants=(odd,))
    (line,) = troubles([one, other])
    assert "P = 2, P = 1 differ" in line
    assert troubles([one, made.result(case=alone)]) == []


def test_the_hash_stands_in_the_source():
    """As other programs look for it."""
    row = RowIndex(rows_of(made.result())).row(FUSED, SHA256)
    assert (row.value, row.source) == (None, "ab" * 32)


def test_more_threads_than_cpus_are_marked():
    """The overlap of ranks that take turns is the scheduler's."""
    row = RowIndex(rows_of(made.result(), cpus=1)).row(FUSED, "threads")
    assert row.status == "out_of_bounds"
    assert "2 threads of all ranks on 1 usable CPUs" in row.source
    assert "oversubscribed" in told(made.result(), cpus=1)


@pytest.mark.parametrize("width", [60, 80, 100])
def test_the_text_keeps_units_and_columns(width):
    """Times, ratios, bytes beside the plan's, loads and waits, on every width."""
    text = text_of(rows_of(made.result()), width)
    assert max(len(line.rstrip()) for line in text.splitlines()) <= width
    for words in (
        "fused is faster", "tokens/s", "overlap", "planned", "3.34 / 3.34 MiB", "gmm1",
        "for rank 1", "largest 1.00 times", "sha256",
    ):  # fmt: skip
        assert words in " ".join(text.split()), words


def test_several_cases_have_a_line_each():
    """A sweep is an overview."""
    other = replace(made.CASE, routing="hot")
    rows = [*rows_of(made.result()), *rows_of(made.result(0.9e-3, 0.8e-3, case=other))]
    text = text_of(rows)
    assert "uniform" in text
    assert "slower" in text


def test_explain_says_whether_fusing_helps():
    """Either way, where the whole interval is on one side."""
    assert "Fusing helps" in told(made.result())["fusing_result"].text
    assert "Fusing loses" in told(made.result(1e-3, 0.9e-3))["fusing_result"].text
    assert "fusing_result" not in told(made.result(1e-3, 1e-3))


def test_explain_says_that_weights_dominate():
    """Fusing cannot save what every way must read; not told where weights are few."""
    finding = told(made.result())["weights_dominate"]
    assert "89.9 %" in finding.text
    few = {"gmm1": {"memory_read": 30_000_000}}
    small = made.variant(SMALL_OPS, 1e-3, counted=few, predicted=few)
    result = made.result(variants=(made.variant(FUSED, 1e-3), small))
    assert "weights_dominate" not in told(result)


def test_explain_sees_exposed_communication_and_hot_experts():
    """Both with their rows; neither on an even run that waits for nobody."""
    hot = told(made.result(expert_rows=(20, 4, 4, 4)))
    assert "15.0 %" in hot["exposed_communication"].text
    assert "2.50 times the mean" in hot["hot_expert"].text
    calm = {"gmm1": 1e-3}
    quiet = tuple(made.variant(n, 1e-3, stage_s=(calm, calm)) for n in (FUSED, SMALL_OPS))
    rules = told(made.result(variants=quiet))
    assert "exposed_communication" not in rules
    assert "hot_expert" not in rules


def test_the_report_has_a_section_where_a_session_ran_expert_parallel():
    """Tables of times, bytes and waits; a reason where there is none."""
    context = expert_parallel.make(material_of([saved(made.result())]))
    (part,) = context["parts"]
    captions = " ".join(table.caption for table in part.tables)
    assert "who waited for whom" in captions
    assert "bytes through memory" in captions
    assert "Fused is faster" in part.texts[0]
    nothing = material_of([session(folder=Path("empty"))])
    assert isinstance(expert_parallel.make(nothing), Missing)
