"""What sessions show, in words with their evidence: a rule base over tidy rows.

:func:`explain` is pure. One rule is one small function and one row of the table in ``rules.py``;
it speaks only with the rows that it rests on, and says how far they carry. A stage is compared with
the first one of its scenario and with the one before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from moe_prof.explain.finding import CERTAINTIES, Certainty, Finding, Rule, Told
from moe_prof.explain.rules import RULES
from moe_prof.explain.stage import Stage, stages_of
from moe_prof.session import SavedSession

__all__ = ["CERTAINTIES", "RULES", "Certainty", "Finding", "explain", "stages_of"]


def explain(sessions: Sequence[SavedSession]) -> tuple[Finding, ...]:
    """All findings, in the order of the rules; equal ones of several stages are one."""
    stages = stages_of(sessions)
    found = [finding for rule in RULES for finding in _apply(rule, stages)]
    merged: dict[tuple[str, str, str], Finding] = {}
    for finding in found:
        key = (finding.rule, finding.text, finding.scenario)
        known = merged.get(key)
        merged[key] = finding if known is None else _joined(known, finding)
    return tuple(merged.values())


def _apply(rule: Rule, stages: Sequence[Stage]) -> Iterator[Finding]:
    if rule.of_stage is not None:
        for stage in stages:
            told = rule.of_stage(stage)
            if told is not None:
                yield _finding(rule, told, stage)
    if rule.of_pair is not None:
        for earlier, stage in _pairs(stages):
            for before in earlier:
                told = rule.of_pair(before, stage)
                if told is not None:
                    yield replace(_finding(rule, told, stage), before=before.label)
                    break  # the nearest comparison that shows it is enough


def _pairs(stages: Sequence[Stage]) -> Iterator[tuple[tuple[Stage, ...], Stage]]:
    """Each stage with what it is compared with: the one before it, and the first."""
    alike: dict[tuple[str, str], list[Stage]] = {}
    for stage in stages:
        known = alike.setdefault((stage.scenario, stage.manifest.program), [])
        if known:
            yield (known[-1],) if len(known) == 1 else (known[-1], known[0]), stage
        known.append(stage)


def _certainty(told: Told) -> Certainty:
    """One sample is no certainty: it may have been disturbed."""
    single = any(row.metric == "time" and row.n is not None and row.n <= 1 for row in told.evidence)
    return "likely" if single and told.certainty == "certain" else told.certainty


def _finding(rule: Rule, told: Told, stage: Stage) -> Finding:
    return Finding(
        rule=rule.name,
        text=told.text,
        evidence=told.evidence,
        advice=told.advice or rule.advice,
        source=rule.source,
        certainty=_certainty(told),
        scenario=stage.scenario,
        stages=(stage.label,),
    )


def _joined(first: Finding, other: Finding) -> Finding:
    least = max(first.certainty, other.certainty, key=CERTAINTIES.index)
    return replace(
        first,
        stages=tuple(dict.fromkeys((*first.stages, *other.stages))),
        evidence=tuple(dict.fromkeys((*first.evidence, *other.evidence))),
        certainty=least,
    )
