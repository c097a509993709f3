"""Damaged perf stat outputs: a report, warnings, or one clear error, never another exception."""

from __future__ import annotations

from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from moe_prof.collectors.perf_parse import parse, recognise
from moe_prof.collectors.perf_rows import rows
from moe_prof.errors import InputError

REFUSED = "perf stat output: no output of perf stat found; expected its text, -x or -j form"
FIXTURES = Path(__file__).parents[1] / "fixtures"
SAMPLES = [
    path.read_text(encoding="utf-8")
    for folder in ("corpus", "perf")
    for path in sorted((FIXTURES / folder).iterdir())
    if path.suffix in (".txt", ".csv", ".json") and path.name != "index.json"
]
SCRAPS = st.sampled_from(
    [
        "", " ", ",", ";", "#", "%", "nan", "-", "<", "\x00", "\u202f", "{", '"', "\n", "1e999",
        "/", "\t", "9", "(",
    ]
)  # fmt: skip


@st.composite
def damaged(draw: st.DrawFn) -> str:
    """A sample with pieces replaced, lines cut and lines doubled."""
    text = draw(st.sampled_from(SAMPLES))
    for _ in range(draw(st.integers(1, 6))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 40)))
        text = text[:start] + draw(SCRAPS) * draw(st.integers(0, 3)) + text[end:]
    return text[: draw(st.integers(0, len(text)))] if draw(st.booleans()) else text


def outcome(text: str) -> str:
    """``report`` or the error's text; anything else escapes."""
    try:
        report = parse(text)
    except InputError as error:
        return str(error)
    rows(report)
    return "report"


@given(damaged())
@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow], deadline=None)
def test_damaged_outputs(text: str) -> None:
    """Samples with holes, cuts and foreign pieces."""
    assert outcome(text) == ("report" if recognise(text) else REFUSED)


@given(st.text(max_size=300))
@settings(max_examples=200, deadline=None)
def test_any_text(text: str) -> None:
    """Arbitrary text."""
    assert outcome(text) == ("report" if recognise(text) else REFUSED)


@given(st.binary(max_size=300))
@settings(max_examples=200, deadline=None)
def test_any_bytes(data: bytes) -> None:
    """Arbitrary bytes, decoded as an import would."""
    text = data.decode("utf-8", errors="replace")

    assert outcome(text) == ("report" if recognise(text) else REFUSED)
