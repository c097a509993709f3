"""Every benchmark runs on a tiny layer and writes what its documentation says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import jsonschema
import pytest

from benchmarks.agreement import AgreementProgram
from benchmarks.ceilings import CeilingsProgram
from benchmarks.peers.__main__ import PeersProgram
from benchmarks.planted import planted_plan
from benchmarks.program import Program, main
from benchmarks.roofline import RooflineProgram
from benchmarks.scaling import ScalingProgram
from moe_prof.kernels import random_tokens, random_weights
from moe_prof.measure.results import Measurement, Request, VariantTiming
from moe_prof.scenario import parse
from tests.benchmarks.document_schema import DOCUMENT
from tests.moe_prof.analysis.timings import two_sides

Run = Callable[[Program, Sequence[str]], dict[str, Any]]

LAYER = "3,32,16,4,2"
QUICK = ("--rounds", "2", "--processes", "1", "--min-sample", "0.001")
PROGRAMS = (AgreementProgram, CeilingsProgram, RooflineProgram, PeersProgram, ScalingProgram)


def test_ceilings_document(run: Run) -> None:
    """The ceilings' file follows the schema and has one result a ceiling."""
    document = run(CeilingsProgram(), ["--threads", "1"])
    jsonschema.validate(document, DOCUMENT)
    names = [result["name"] for result in document["results"]]
    assert names == [ceiling["name"] for ceiling in document["ceilings"]]


def test_roofline_document(run: Run) -> None:
    """Time, both floors and their ratio stand in the roofline's file, and agree."""
    document = run(
        RooflineProgram(),
        ["--scenario", LAYER, "--variant", "autovec", "--threads", "1", *QUICK],
    )
    jsonschema.validate(document, DOCUMENT)
    (result,) = document["results"]
    ratio = result["time_s"]["value"] / result["floor_s"]
    assert result["time_over_floor"]["value"] == pytest.approx(ratio)
    assert (result["status"], result["contender"], result["threads"]) == ("ok", "autovec", 1)
    assert len(result["samples_s"]) == 2


def test_peers_document(run: Run) -> None:
    """A peer stands beside our variant with its ratio and both errors."""
    document = run(
        PeersProgram(),
        ["--scenario", LAYER, "--variant", "autovec", "--peer", "numpy", "--threads", "1", *QUICK],
    )
    jsonschema.validate(document, DOCUMENT)
    ours, peer = document["results"]
    assert (ours["kind"], peer["kind"], peer["status"]) == ("variant", "peer", "ok")
    ratio = peer["time_s"]["value"] / ours["time_s"]["value"]
    assert peer["over_our_best"]["value"] == pytest.approx(ratio)
    assert peer["oracle_rel_rmse"] < 1e-6 < peer["unquantized_rel_rmse"]


def test_scaling_document(run: Run) -> None:
    """One result per number of tokens; one thread has efficiency 1."""
    document = run(
        ScalingProgram(),
        [
            "--scenario",
            LAYER,
            "--variant",
            "autovec",
            "--tokens",
            "1",
            "4",
            "--threads",
            "1",
            *QUICK,
        ],
    )
    jsonschema.validate(document, DOCUMENT)
    assert [result["tokens"] for result in document["results"]] == [1, 3, 4]
    assert [result["efficiency"]["value"] for result in document["results"]] == [1.0, 1.0, 1.0]


def played(request: Request) -> Measurement:
    """A run of the three copies; asked, its samples are enough."""
    old, same = two_sides(request.seed, "normal", processes=8)
    samples = (old, same, {key: 1.03 * value for key, value in same.items()})
    assert request.enough is not None
    assert request.enough(dict(zip((j.variant for j in request.jobs), samples, strict=True)))
    return Measurement(
        timings=tuple(
            VariantTiming(variant=job.variant, status="ok", samples_s=found)
            for job, found in zip(request.jobs, samples, strict=True)
        ),
        processes=8, interrupted=False, checked_tokens=1, notes=(), elapsed_s=1.0,
    )  # fmt: skip


AGREEMENT = ("--scenario", LAYER, "--variant", "autovec", "--threads", "1", "--runs", "2")


def test_a_comparison_without_time_is_counted_and_the_others_go_on(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An hour of comparisons is not lost for one of them."""

    def first_fails(request: Request) -> Measurement:
        found = played(request)
        if request.seed:
            return found
        slow = replace(found.timings[0], status="no_time", reason="too slow", samples_s={})
        return replace(found, timings=(slow, *found.timings[1:]))

    monkeypatch.setattr("benchmarks.agreement.measure", first_fails)
    document = run(AgreementProgram(), AGREEMENT)
    (result,) = document["results"]
    assert (result["failed"], result["equal"]) == (1, {"same": 1})
    assert "comparison 1: autovec@a: too slow" in document["notes"][-1]


def test_interrupted_comparisons_are_counted(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C in the second one: the table has the first."""

    def second_is_interrupted(request: Request) -> Measurement:
        return replace(played(request), interrupted=request.seed == 1)

    monkeypatch.setattr("benchmarks.agreement.measure", second_is_interrupted)
    document = run(AgreementProgram(), AGREEMENT)
    assert document["results"][0]["planted"] == {"slower": 1}
    assert document["notes"][-1].startswith("interrupted")


def test_agreement_document(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two played runs of the three copies: their verdicts are counted, the ratios kept."""
    monkeypatch.setattr("benchmarks.agreement.measure", played)
    document = run(AgreementProgram(), AGREEMENT)
    jsonschema.validate(document, DOCUMENT)
    (result,) = document["results"]
    assert result["equal"] == {"same": 2}
    assert result["planted"] == {"slower": 2}
    assert result["ratios"][0]["planted"] == pytest.approx(1.03, abs=0.01)
    assert 0 < result["scatter_between_processes"] < 0.02


def test_planted_plans_take_longer_by_their_part() -> None:
    """The busy loop of 50 % is inside the time that is told; an equal twin has none."""
    weights = random_weights(parse(LAYER), seed=0)
    tokens = random_tokens(parse(LAYER), seed=0)
    for name, share in (("autovec@a", 0.0), ("autovec@+50%", 0.5)):
        plan = planted_plan(name, weights, threads=1, isa=None, max_tokens=3, build="release")
        with plan as opened:
            assert opened.info.variant == name
            inner = 0.01
            opened._plan = TimedPlan(inner)  # type: ignore[attr-defined]
            (taken,) = opened.time_forward(tokens, 1)
            assert taken >= (1 + share) * inner
            assert (taken == inner) == (share == 0)


class TimedPlan:
    """Tells a time without taking any."""

    def __init__(self, taken_s: float) -> None:
        self.taken_s = taken_s

    def time_forward(self, x: object, iterations: int) -> list[float]:
        """One batch."""
        return [self.taken_s]


def test_agreement_stops_in_time(run: Run) -> None:
    """No comparison begins that could not end in the time."""
    document = run(AgreementProgram(), ["--scenario", LAYER, "--max-time", "1", "--runs", "3"])
    assert [sum(result["equal"].values()) for result in document["results"]] == [0]
    assert "0 of 3 comparisons in the time" in document["notes"][-1]


@pytest.mark.parametrize("program", PROGRAMS)
def test_help(program: type[Program], capsys: pytest.CaptureFixture[str]) -> None:
    """``--help`` explains the program and the common options."""
    with pytest.raises(SystemExit) as stop:
        main(program(), ["--help"])
    text = capsys.readouterr().out
    assert stop.value.code == 0
    for option in ("--threads", "--json FILE", "--plot FILE"):
        assert option in text


@pytest.mark.parametrize(
    ("program", "argv", "words"),
    [
        (RooflineProgram, ["--scenario", "S9"], "unknown scenario 'S9'"),
        (RooflineProgram, ["--scenario", "0,8,8,2,1"], "has no tokens"),
        (RooflineProgram, ["--variant", "nosuch"], "unknown variant 'nosuch'"),
        (AgreementProgram, ["--variant", "nosuch"], "unknown variant 'nosuch'"),
        (PeersProgram, ["--peer", "nosuch"], "unknown peer 'nosuch'"),
        (CeilingsProgram, ["--json", "/nosuch/x.json"], "there is no folder /nosuch"),
        (CeilingsProgram, ["--plot", "x.gif"], "must end in .png, .svg or .pdf"),
    ],
)
def test_wrong_usage(
    program: type[Program], argv: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A wrong request ends at once with exit code 2 and one line that says what is wrong."""
    assert main(program(), argv) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert words in line
