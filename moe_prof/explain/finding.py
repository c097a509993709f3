"""What an explanation consists of: one finding a rule, with the rows that it rests on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from moe_prof.explain.stage import Stage
from moe_prof.rows import Row

Certainty = Literal["certain", "likely", "possible"]
CERTAINTIES: tuple[Certainty, ...] = ("certain", "likely", "possible")
"""``certain``: follows from measured values alone; ``likely``: from modelled or simulated ones, or
from measured ones and one stated assumption; ``possible``: other causes would look the same."""


@dataclass(frozen=True, slots=True)
class Told:
    """What a rule has to say: text, the rows that it rests on (never none), how sure it is.

    ``advice`` stands in for the rule's where that does not fit these rows.
    """

    text: str
    evidence: tuple[Row, ...]
    certainty: Certainty = "certain"
    advice: str = ""

    def __post_init__(self) -> None:
        if not self.evidence:
            raise ValueError("a rule cannot speak without evidence")


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: a name, what it tells of one stage or of two, what to do, where it is from.

    ``of_stage`` sees each stage alone; ``of_pair`` sees two stages of one scenario, before and
    after. Exactly one of them is set.
    """

    name: str
    advice: str
    source: str
    of_stage: Callable[[Stage], Told | None] | None = None
    of_pair: Callable[[Stage, Stage], Told | None] | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that the rows show.

    Attributes:
        rule: name of the rule that speaks.
        text: what it says, in a sentence.
        evidence: the rows that it rests on, at least one.
        advice: what to do about it.
        source: where the rule's knowledge is from.
        certainty: how far the evidence carries.
        scenario / stages: what it is about; of two stages, the one before stands in ``before``.
    """

    rule: str
    text: str
    evidence: tuple[Row, ...]
    advice: str
    source: str
    certainty: Certainty
    scenario: str
    stages: tuple[str, ...]
    before: str = ""
