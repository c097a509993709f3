"""``explain``: published counters of six stages re-read, and what it says on bad input."""

from pathlib import Path

import pytest

from moe_prof import machine, session
from moe_prof.rows import Row
from tests.moe_prof.commands.running import main

STAGES = Path(__file__).parents[2] / "fixtures" / "perf" / "stages"
ORDER = ("openmp", "matricized", "packed-weights", "packed-vnni-amx", "dispatched", "final")


@pytest.fixture(scope="module")
def stages(tmp_path_factory):
    """Sessions of the published table, imported one by one in its order."""
    folder = tmp_path_factory.mktemp("stages")
    for name in ORDER:
        ran = main(
            "import", STAGES / f"{name}.csv", "--scenario", "S3", "--variant", name,
            "--output", folder / name,
        )  # fmt: skip
        assert ran.code == 0
    return [folder / name for name in ORDER]


@pytest.fixture(scope="module")
def found(stages):
    """Texts of the findings by (rule, stage)."""
    rows = main("explain", *stages, "--format", "json").document["rows"]
    by_number: dict[int, dict[str, dict]] = {}
    for row in rows:
        by_number.setdefault(row["repeat"], {})[row["metric"]] = row
    return {
        (texts["finding"]["source"], stage): {k: v["source"] for k, v in texts.items()}
        for texts in by_number.values()
        for stage in texts["finding"]["variant"].split(", ")
    }


def test_ipc_is_that_of_spinning_threads(found):
    """First trap: IPC 0.21 is not the microkernel's."""
    assert "spin" in found["ipc_of_spinning", "dispatched"]["finding_text"]
    for stage in ("packed-vnni-amx", "final"):
        assert "IPC is not the kernel's" in found["ipc_fell_while_spinning", stage]["finding_text"]
    spoken = {stage for rule, stage in found if "spinning" in rule}
    assert spoken == {"packed-vnni-amx", "dispatched", "final"}


def test_misses_fell_while_their_rate_rose(found):
    """Second trap: references fell from 184 M to 37 M, misses from 4.07 M to 2.51 M."""
    text = found["rate_rose_misses_fell", "dispatched"]
    assert "misses fell from 4.07 M to 2.51 M" in text["finding_text"]
    assert "184 M, now 37.2 M" in text["finding_text"]
    assert "cache_miss_rate 6.8 % (dispatched" in text["finding_evidence"]


def test_additional_instructions_are_waiting(found):
    """Third trap: 22.6 G after 14.3 G instructions on an unchanged path."""
    text = found["instructions_of_waiting", "final"]
    assert "58.4 % more instructions than dispatched, but not more work" in text["finding_text"]
    assert [stage for rule, stage in found if rule == "instructions_of_waiting"] == ["final"]


def test_what_else_the_table_shows(found):
    """Whole process, summed cycles, scalar code bound by instructions, fewer instructions."""
    for stage in ORDER:
        assert ("whole_process", stage) in found
        assert ("summed_cycles", stage) in found
    assert ("instruction_bound", "openmp") in found
    assert "82.6 % fewer" in found["vectorised", "dispatched"]["finding_text"]
    assert ("vectorised", "matricized") not in found


@pytest.mark.parametrize("width", ["100", "80", "60"])
def test_text_fits(stages, monkeypatch, width):
    """Findings by certainty, within the columns there are."""
    monkeypatch.setenv("COLUMNS", width)
    ran = main("explain", *stages)
    assert ran.code == 0
    assert max(len(line) for line in ran.out.splitlines()) <= int(width)
    assert ran.out.index("Certain:") < ran.out.index("Likely:") < ran.out.index("Possible:")


def test_csv_goes_to_a_file(stages, tmp_path):
    """``--output`` with a name of a table."""
    assert main("explain", *stages, "--output", tmp_path / "found.csv").code == 0
    assert "rate_rose_misses_fell" in (tmp_path / "found.csv").read_text()


def made(folder, *rows):
    """A session with rows on disk."""
    with session.create(
        "topdown", scenario="S1", shape=(), variants=(), seed=0, machine=machine.read().as_dict(),
        tools={}, argv=(), folder=folder,
    ) as opened:  # fmt: skip
        opened.add(rows)
    return folder


def test_nothing_certain_is_said(tmp_path):
    """A session whose rows say nothing gets no story."""
    folder = made(
        tmp_path / "s", Row(collector="t", variant="v", metric="other", value=1.0, unit="1")
    )
    ran = main("explain", folder)
    assert (ran.code, ran.out.startswith("Nothing certain can be said")) == (0, True)
    (row,) = main("explain", folder, "--format", "json").document["rows"]
    assert (row["metric"], row["provenance"]) == ("finding", "unavailable")


def test_only_likely_ones_are_told_as_such(tmp_path):
    """Modelled rows alone are announced as uncertain."""
    folder = made(
        tmp_path / "s",
        Row(collector="model", variant="v", metric="Retiring", value=0.8, unit="slots",
            provenance="modelled"),
    )  # fmt: skip
    assert main("explain", folder).out.startswith("Nothing here is certain")


@pytest.mark.parametrize(
    ("code", "words"), [(1, "is not a session"), (2, "named twice"), (3, "no row of any variant")]
)
def test_bad_input_is_one_line(tmp_path, code, words):
    """Each mistake has its exit code and one clear line."""
    folder = made(tmp_path / "s")
    arguments = {1: [tmp_path / "none"], 2: [folder, folder], 3: [folder]}[code]
    ran = main("explain", *arguments)
    assert (ran.code, len(ran.complaints), ran.out) == (code, 1, "")
    assert words in ran.err


def test_a_folder_is_no_output(tmp_path):
    """explain makes no session, so a folder to write one to is a mistake."""
    ran = main("explain", made(tmp_path / "s"), "--output", tmp_path / "folder")
    assert (ran.code, "makes no session" in ran.err) == (2, True)
