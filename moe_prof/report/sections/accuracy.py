"""What one activation scale for all tokens would cost, and how full the accumulators get."""

from __future__ import annotations

from moe_prof.analysis import accuracy
from moe_prof.analysis.work import headrooms
from moe_prof.figures import scale_errors
from moe_prof.figures.accuracy import TITLES
from moe_prof.report.material import Material
from moe_prof.report.parts import Context, Missing, Part, Table, picture, plain_table, titled
from moe_prof.rows import Row
from moe_prof.scenario import Scenario
from moe_prof.units import digits_text, share_text

MORE = "'moe-prof report --accuracy' also computes what quantization costs for these lengths."


def make(material: Material) -> Context | Missing:
    """One part for each scenario of the sessions; the study itself only where it was asked for."""
    shapes: dict[tuple[int, ...], tuple[Scenario, int]] = {}
    for source in material.sources:
        if source.scenario is not None:
            shapes.setdefault(
                source.scenario.shape, (source.scenario, source.session.manifest.seed)
            )
    if not shapes:
        return Missing("no session says which layer it ran")
    parts = []
    for number, (scenario, seed) in enumerate(shapes.values(), 1):
        rows = accuracy.study(scenario, seed) if material.accuracy else []
        part = _part(scenario, rows, number)
        parts.append(titled(part, scenario.label) if len(shapes) > 1 else part)
    return {"parts": parts}


def _part(scenario: Scenario, rows: list[Row], number: int) -> Part:
    errors = accuracy.errors_from(rows)
    _, d, h, _, _ = scenario.shape
    texts = (
        f"A product of two int8 values is at most 2^14 in size, so a sum of {max(d, h)} products "
        "needs the headroom that the table gives. An int16 accumulator can overflow at the second "
        "product.",
    )
    tables = [_headroom(scenario, rows)]
    if errors:
        tables.insert(0, _errors(errors))
    shown = picture(
        scale_errors(errors),
        f"accuracy-{number}",
        "Median relative error of a token against the layer with float activations, logarithmic.",
    )
    return Part(texts=texts, pictures=shown, tables=tuple(tables), notes=() if rows else (MORE,))


def _errors(errors: list[accuracy.ScaleError]) -> Table:
    rows = [
        (
            error.case,
            TITLES[error.scheme],
            share_text(error.rel_rmse),
            share_text(error.median_token),
            share_text(error.worst_token),
        )
        for error in errors
    ]
    titles = ("tokens", "activations have", "relative RMSE", "median token", "worst token")
    caption = "Error against float activations, without the residual (measured)"
    return plain_table(caption, titles, rows)


def _headroom(scenario: Scenario, rows: list[Row]) -> Table:
    met = {
        row.source.partition(":")[0]: row.value
        for row in rows
        if row.metric == accuracy.MET_SHARE and row.value is not None
    }
    lines = []
    for (length, bits), bound in headrooms(scenario).items():
        key = accuracy.accumulator_name(bits, bound.terms, length)
        lines.append(
            (
                f"int{bits}",
                f"{bound.terms} ({'gate, up' if length == 'd_model' else 'down'})",
                str(bound.safe_terms),
                f"{digits_text(bound.margin)}x",
                "safe" if bound.is_safe else "can overflow",
                *([_met(met[key])] if key in met else []),
            )
        )
    titles = ["accumulator", "terms", "terms that always fit", "margin in the worst case", "so it"]
    if met:
        titles.append("largest sum met")
    return plain_table("Headroom of the accumulators (worst case modelled)", titles, lines)


def _met(share: float) -> str:
    return f"{share_text(share)} of capacity" + (", overflows" if share > 1 else "")
