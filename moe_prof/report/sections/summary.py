"""The summary in words: what was measured, what came out, what disturbs it, what to try next."""

from __future__ import annotations

from dataclasses import dataclass

from moe_prof.analysis import crowding
from moe_prof.analysis.work import count_work
from moe_prof.hotspots.names import short_name
from moe_prof.render.ep_view import answer_text, cases_of
from moe_prof.render.headline import answer, fastest_text
from moe_prof.render.program_report import verdict_text
from moe_prof.render.tables import LEGEND
from moe_prof.report.material import Material, Source
from moe_prof.report.parts import Context
from moe_prof.report.sections.functions import split_name
from moe_prof.units import count_text, digits_text, plural_text, share_text

MOST_CASES = 4
"""Expert-parallel cases that the summary tells of; their section has all."""
_STATES = {
    "partial": "This run was interrupted: only what was measured before is shown.",
    "failed": "This run failed: only what was measured before is shown.",
    "running": "This run had not ended when the report was made, or it was killed.",
}


@dataclass(frozen=True, slots=True)
class Story:
    """One session in words.

    Attributes:
        warnings: what the reader must know before all figures.
        sentences: what came out.
        facts: what was run, when, on what.
    """

    label: str
    warnings: tuple[str, ...]
    sentences: tuple[str, ...]
    facts: tuple[str, ...]


def make(material: Material) -> Context:
    """A story a session; the layer is described once where all sessions ran the same."""
    layers = [_layer(source) for source in material.sources]
    common = layers[0] if len(set(layers)) == 1 else ""
    stories = [
        _story(source, "" if common else layer)
        for source, layer in zip(material.sources, layers, strict=True)
    ]
    return {"stories": stories, "layer": common, "legend": LEGEND}


def _story(source: Source, layer: str) -> Story:
    index, variants = source.index, source.variants
    crowd = crowding.warning(index, variants)
    state = _STATES.get(source.session.manifest.state, "")
    told = _verdicts(source)
    sentences = [*told, *_speed(source), *_spots(source), *([] if told else _counts(source))]
    if not sentences:
        sentences = [f"{count_text(len(source.rows))} figures of {_names(variants)}."]
    return Story(
        source.label,
        tuple(text for text in (f"{_capital(crowd)}." if crowd else "", state) if text),
        tuple(sentences),
        tuple(text for text in (layer, _run(source)) if text),
    )


def _verdicts(source: Source) -> list[str]:
    """What bounds a program, as it was told when it was measured."""
    told = []
    for name in source.variants if source.session.manifest.program else ():
        cause, evidence, advice = (
            source.index.text(name, metric)
            for metric in ("verdict", "verdict_evidence", "verdict_advice")
        )
        if cause:
            told.append(f"{name}{verdict_text(cause, evidence, advice)}")
    return told


def _speed(source: Source) -> list[str]:
    """The answer of ``topdown``; of ``bench`` which variant is the fastest."""
    parallel = [text for case in cases_of(source.rows) if (text := answer_text(case))]
    if parallel:
        return [f"{text[:1].upper()}{text[1:]}." for text in parallel[:MOST_CASES]]
    timed = [name for name in source.variants if source.index.value(name, "time") is not None]
    if not timed:
        return []
    if any(source.index.text(name, "verdict") for name in source.variants):
        return [str(text) for text in answer(source.index, source.variants)]
    fastest = fastest_text(source.index, source.variants)
    return [f"{fastest}."] if fastest else []


def _spots(source: Source) -> list[str]:
    """The function with the largest own share of each variant."""
    best: dict[str, tuple[float, str]] = {}
    for row in source.rows:
        if row.metric == "self_share" and row.thread is None and row.value is not None:
            best[row.variant] = max(
                best.get(row.variant, (0.0, "")), (row.value, split_name(row.source)[0])
            )
    lines = []
    for variant, (share, name) in best.items():
        waiting = source.index.value(variant, "wait_share")
        text = f"{variant}: the hottest function is {short_name(name)} with {share_text(share)}"
        lines.append(f"{text}; waiting takes {share_text(waiting)}." if waiting else f"{text}.")
    return lines


def _counts(source: Source) -> list[str]:
    """Instructions of the variants that execute the most and the fewest, without times."""
    index = source.index
    counted = sorted(
        (value, name)
        for name in source.variants
        if (value := index.value(name, "instructions")) is not None
    )
    if not counted or any(index.value(name, "time") is not None for name in source.variants):
        return []
    (least, first), (most, last) = counted[0], counted[-1]
    if first == last:
        return [f"{first} executes {count_text(least)} instructions."]
    return [
        f"{last} executes {count_text(most)} instructions, {first} {count_text(least)}: "
        f"{digits_text(most / least)} times fewer."
        if least > 0
        else f"{last} executes {count_text(most)} instructions."
    ]


def _layer(source: Source) -> str:
    """The shape in words, "" for a session without one."""
    if source.scenario is None:
        return ""
    n, d, h, e, k = source.scenario.shape
    macs = count_text(count_work(source.scenario).macs)
    shared = " and a shared one" if source.scenario.options.has_shared else ""
    return (
        f"{source.scenario.label}: {plural_text(n, 'token')} of width {d}, "
        f"{plural_text(e, 'expert')} of inner width {h}, {k} a token{shared}: {macs} "
        "multiply-accumulates a forward"
    )


def _run(source: Source) -> str:
    """Which command, when and where."""
    manifest = source.session.manifest
    cpu = manifest.machine.get("model_name") or manifest.machine.get("architecture")
    where = "imported on" if manifest.command == "import" else "on"
    return f"moe-prof {manifest.command}, {manifest.started}, {where} {cpu or 'an unknown CPU'}"


def _names(variants: tuple[str, ...]) -> str:
    if not variants:
        return "no variant"
    return variants[0] if len(variants) == 1 else f"{len(variants)} variants"


def _capital(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"
