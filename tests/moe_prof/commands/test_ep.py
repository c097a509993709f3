"""The ``ep`` command's arguments and its sessions; ranks are played."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from moe_prof import session as sessions
from moe_prof.commands import ep as command
from moe_prof.ep import signs
from moe_prof.errors import WorkloadError
from tests.moe_prof.commands.running import main
from tests.moe_prof.ep import made_results as made


@pytest.fixture
def played(monkeypatch):
    """Made results instead of ranks; gives the trials that were asked for."""
    trials = []

    def launch(trial, ranks, folder, progress):
        trials.append((ranks, trial))
        folder.mkdir(parents=True)
        with (folder / signs.RESULTS).open("w") as file:
            for case in trial.cases:
                file.write(json.dumps(made.result(case=case).to_json()) + "\n")

    monkeypatch.setattr(command, "launch", launch)
    monkeypatch.setattr(command, "build", lambda kind, progress: None)
    monkeypatch.delenv("PMI_SIZE", raising=False)
    return trials


def ep(tmp_path, *words):
    """Run the command into a session of the test's own."""
    return main("ep", *words, "--output", tmp_path / "session")


def test_the_contract_rows_are_there(played, tmp_path):
    """Both variants with their hash, time and rate; the session holds the same."""
    ran = ep(tmp_path, "512,1024", "--ranks", "2", "--tokens", "16", "--format", "json")
    assert ran.code == 0, ran.err
    for variant in ("fused", "small_ops"):
        assert ran.rows[variant, "output_sha256"]["source"] == "ab" * 32
        assert ran.rows[variant, "time"]["value"] > 0
    saved = sessions.load(tmp_path / "session")
    assert len(saved.rows) == len(ran.document["rows"])
    assert saved.manifest.state == "complete"


def test_a_sweep_starts_each_number_of_ranks_once(played, tmp_path):
    """All cases of one number of ranks are one trial; the impossible ones are left out."""
    words = ("512,1024", "1024,1024", "--ranks", "1,2", "--rows-per-expert", "1,200")
    ran = ep(tmp_path, *words, "--routing", "uniform,hot")
    assert ran.code == 0, ran.err
    assert [ranks for ranks, _ in played] == [1, 2]
    assert len(played[0][1].cases) == 4
    assert len(played[1][1].cases) == 8
    assert "not measured: 512,1024 E8 K4 T400 P1" in " ".join(ran.out.split())


def test_compare_reads_two_sessions_of_ep(played, tmp_path):
    """The rounds of each variant are found, and the runs are comparable."""
    for name in ("old", "new"):
        assert ep(tmp_path / name, "512,1024", "--ranks", "2", "--tokens", "16").code == 0
    ran = main("compare", tmp_path / "old/session", tmp_path / "new/session")
    assert ran.code == 0, ran.err
    assert "fused" in ran.out


def test_explain_and_report_read_a_session_of_ep(played, tmp_path):
    """Rules of expert-parallel runs speak, and the page has their section."""
    assert ep(tmp_path, "512,1024", "--ranks", "2", "--tokens", "16").code == 0
    assert "Fusing helps" in " ".join(main("explain", tmp_path / "session").out.split())
    page = tmp_path / "page.html"
    ran = main("report", tmp_path / "session", "-o", page)
    assert ran.code == 0, ran.err
    text = page.read_text()
    assert "who waited for whom" in text
    assert "Fused is faster than small ops" in text


def test_what_was_measured_before_a_failure_is_kept(monkeypatch, played, tmp_path):
    """The rows of finished cases are in the session, and the error is told."""
    working = command.launch

    def failing(trial, ranks, folder, progress):
        working(replace(trial, cases=trial.cases[:1]), ranks, folder, progress)
        raise WorkloadError("rank 1 of 2 died")

    monkeypatch.setattr(command, "launch", failing)
    ran = ep(tmp_path, "512,1024", "1024,1024", "--ranks", "2")
    assert ran.code == 6
    assert any("rank 1 of 2 died" in line for line in ran.complaints)
    saved = sessions.load(tmp_path / "session")
    assert {row.scenario for row in saved.rows} == {"512,1024 E8 K4 T64 P2 uniform"}
    assert saved.manifest.state == "failed"


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("512",), "shape '512': two sizes H,N are needed"),
        (("512,x",), "shape '512,x'"),
        (("512,1024", "--ranks", "3"), "--experts 8: must be a multiple of the 3 ranks"),
        (("512,1024", "--ranks", "0"), "is not a whole number of at least 1"),
        (("512,1024", "--tokens", "257"), "at most 256"),
        (("512,1024", "--routing", "cold"), "'cold' is none of uniform, lognormal, hot"),
        (("512,1024", "--inject", "burn@1"), "is not KIND@RANK"),
        (("512,1024", "--inject", "die@1"), "there is no rank 1 of 1"),
        (("512,1024", "--tokens", "8", "--rows-per-expert", "2"), "leave one of them out"),
        (("512,1024", "--top-k", "9"), "--top-k 9"),
        (("99999,99999", "--experts", "512"), "GiB of memory"),
    ],
)
def test_bad_arguments_are_one_line(played, tmp_path, words, complaint):
    """What is wrong, on what; exit code 2, and nothing is started."""
    ran = ep(tmp_path, *words)
    assert ran.code == 2
    (line,) = ran.complaints
    assert complaint in line
    assert not played
