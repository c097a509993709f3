"""The compare command on sessions on disk: text, rows, refusals, exit codes."""

from dataclasses import replace

import pytest

from moe_prof import session as sessions
from moe_prof.machine import read
from tests.moe_prof.analysis.sessions import failed_rows, time_rows
from tests.moe_prof.analysis.timings import two_sides
from tests.moe_prof.commands.running import main

MACHINE = read().as_dict()


@pytest.fixture
def make(tmp_path):
    """Write a session of these rows; gives its folder."""

    def go(name, *groups, command="bench", scenario="S1", seed=0, **changes):
        made = sessions.create(
            command, scenario=scenario, shape=(1, 256, 128, 16, 4), variants=("packed",), seed=seed,
            machine=MACHINE, tools={}, argv=[command], folder=tmp_path / name,
        )  # fmt: skip
        with made:
            made.add(replace(row, scenario=scenario) for rows in groups for row in rows)
            made.update(**changes)
        return tmp_path / name

    return go


@pytest.fixture
def two(make):
    """Two sessions of packed; the second takes ``ratio`` times as long, plus the baseline."""

    def go(ratio, noise="normal", **changes):
        old, new = two_sides(0, noise, ratio=ratio)
        return make("old", time_rows(old)), make("new", time_rows(new), **changes)

    return go


def verdict(ran):
    """The verdict of packed."""
    return ran.rows["packed", "comparison"]["source"]


@pytest.mark.parametrize(("ratio", "word"), [(1.0, "same"), (1.05, "slower"), (1 / 1.05, "faster")])
def test_verdicts(two, ratio, word):
    """In the rows and in the first lines of the text."""
    old, new = two(ratio)
    ran = main("compare", old, new, "--format", "json")
    assert (ran.code, verdict(ran), ran.document["session"]) == (0, word, None)
    assert ran.rows["packed", "time_ratio"]["value"] == pytest.approx(ratio, rel=0.01)
    text = main("compare", old, new).out
    assert f"S1: packed: {word}, {ratio:.2f}"[:-1] in text
    assert "unpaired: two runs" in text


def test_variants_of_one_session(make):
    """Paired; the old one is named first."""
    old, new = two_sides(0, "correlated", ratio=1.05)
    folder = make("one", time_rows(old, variant="./old.so"), time_rows(new, variant="./new.so"))
    ran = main("compare", folder, "--variant", "./old.so,./new.so")
    assert ran.code == 0
    assert "S1: ./new.so over ./old.so: slower, 1.05" in ran.out
    assert "paired: same rounds of one run" in ran.out


def test_several_sessions_are_compared_with_the_first(make):
    """Each with rows of its own run."""
    folders = [
        make(name, time_rows(two_sides(seed, "normal")[0]))
        for seed, name in enumerate(("a", "b", "c"))
    ]
    ran = main("compare", *folders, "--format", "json")
    ratios = [row for row in ran.document["rows"] if row["metric"] == "time_ratio"]
    assert len({row["run_id"] for row in ratios}) == len(ratios) == 2


def test_csv_is_tidy(two):
    """One line a row under the columns of all commands."""
    ran = main("compare", *two(1.0), "--format", "csv")
    assert ran.out.splitlines()[0].startswith("run_id,scenario,variant,collector")
    assert ",time_ratio_ci_low," in ran.out


@pytest.mark.parametrize("columns", ["100", "80", "60"])
def test_no_column_is_lost(two, columns, monkeypatch):
    """On narrow terminals as well."""
    monkeypatch.setenv("COLUMNS", columns)
    out = main("compare", *two(1.05)).out
    assert max(map(len, out.splitlines())) <= int(columns)
    for word in ("old", "new / old", "95 % interval", "effect", "verdict", "slower", "ms"):
        assert word in out


@pytest.mark.parametrize(
    ("ratio", "limit", "code"), [(1.0, "3%", 0), (1.06, "3%", 4), (1.03, "3%", 5), (1.06, "9%", 0),
                                 (0.9, "3%", 0)],
)  # fmt: skip
def test_failing_a_build(two, ratio, limit, code):
    """4: slower by more; 5: cannot be told; else 0. The result is printed all the same."""
    ran = main("compare", *two(ratio), "--fail-on", limit)
    assert ran.code == code
    assert "new / old" in ran.out
    assert len(ran.complaints) == (code != 0)


def test_noise_fails_no_build_silently(make):
    """Exit code 5 with the interval; 0 without --fail-on."""
    old, new = two_sides(0, "normal", level=0.3)
    folders = make("old", time_rows(old)), make("new", time_rows(new))
    assert main("compare", *folders).code == 0
    ran = main("compare", *folders, "--fail-on", "3%")
    assert ran.code == 5
    assert "too noisy to exclude that it is slower by 3 %" in ran.err


def test_a_variant_without_a_time_is_no_success(make):
    """Exit code 3 with its reason, with --fail-on and without."""
    old, _ = two_sides(0, "normal")
    folders = make("old", time_rows(old)), make("new", failed_rows("wrong result: rel RMSE 0.3"))
    for options in ((), ("--fail-on", "3%")):
        ran = main("compare", *folders, *options)
        assert ran.code == 3
        assert "wrong result: rel RMSE 0.3" in ran.err


def test_too_few_samples_are_no_verdict(make):
    """A ratio, the reason, exit code 3 for a gate."""
    rows = [time_rows({(0, r): 1e-3 for r in range(3)}) for _ in range(2)]
    folders = make("old", rows[0]), make("new", rows[1])
    ran = main("compare", *folders, "--format", "json")
    assert ran.code == 0
    assert ran.rows["packed", "time_ratio"]["value"] == 1.0
    assert "3 samples" in ran.rows["packed", "comparison"]["source"]
    assert main("compare", *folders, "--fail-on", "3%").code == 3


def test_the_baseline_fails_no_gate(make):
    """The machine was 10 % slower: packed cannot be told, scalar is no regression."""
    old, new = two_sides(0, "normal", ratio=1.1)
    folders = [
        make(name, time_rows(samples), time_rows(samples, variant="scalar"))
        for name, samples in (("old", old), ("new", new))
    ]
    ran = main("compare", *folders, "--fail-on", "3%")
    assert ran.code == 5
    assert "scalar took 1.10" in ran.out


def test_unequal_sessions_are_refused(make):
    """One line that names all of it and the way out; exit code 2."""
    old, new = two_sides(0, "normal")
    folders = make("old", time_rows(old)), make("new", time_rows(new), scenario="S3", seed=7)
    ran = main("compare", *folders)
    assert (ran.code, ran.out) == (2, "")
    (line,) = ran.complaints
    assert "scenario (S1; S3); " in line
    assert "seed (0; 7)" in line
    assert line.endswith("--allow scenario,seed")
    assert main("compare", *folders, "--allow", "seed").code == 2
    for options in (("--allow", "scenario,seed"), ("--force",)):
        ran = main("compare", *folders, *options)
        assert ran.code == 0
        assert "compared although they differ in seed (0; 7)" in ran.out


def test_an_interrupted_session_is_told(two):
    """What it has is compared."""
    old, new = two(1.0)
    manifest = new / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"complete"', '"partial"'))
    assert "the run is partial, so rows may be" in " ".join(main("compare", old, new).out.split())


def test_imported_sessions(tmp_path):
    """Two files of perf stat: the two variants left over are a pair; ratios without verdict."""
    folders = []
    for name, scale in (("old", 1), ("new", 2)):
        text = tmp_path / f"{name}.txt"
        lines = [
            " Performance counter stats for './moe':", "",
            f"     {1000 * scale},000      instructions",
            f"      {500 * scale},000      cycles", "",
            f"       {scale}.5 seconds time elapsed", "",
        ]  # fmt: skip
        text.write_text("\n".join(lines))
        folder = tmp_path / f"{name}-session"
        assert main("import", text, "--output", folder).code == 0
        folders.append(folder)
    ran = main("compare", *folders)
    assert ran.code == 0
    assert "new over old: 1.667 of the old time; no verdict: 1 sample" in ran.out
    assert "instructions" in ran.out
    assert "2.000" in ran.out


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (("--fail-on", "3"), "is not a percentage"),
        (("--fail-on", "-3%"), "is not a percentage"),
        (("--margin", "0%"), "is not a percentage"),
        (("--margin", "1e9%"), "is not a percentage"),
        (("--allow", "all"), "is none of scenario, weights, seed"),
        (("--allow", ","), "no name"),
        (("--variant", "openmp"), "the old session has no variant 'openmp'; it has: packed"),
        (("--variant", "packed,packed=packed,x"), "no variant 'x'"),
        (("--output", "result.html"), "no .html file can be written"),
        (("--output", "folder"), "name a file"),
    ],
)
def test_wrong_options(two, argv, words):
    """One line, exit code 2."""
    ran = main("compare", *two(1.0), *argv)
    assert ran.code == 2
    (line,) = ran.complaints
    assert words in line


def test_what_is_no_session(tmp_path, two):
    """A folder without manifest, a file, nothing: exit code 1, which one, and why."""
    old, _ = two(1.0)
    file = tmp_path / "file"
    file.write_text("x")
    for wrong in (tmp_path, file, tmp_path / "none"):
        ran = main("compare", old, wrong)
        assert ran.code == 1
        (line,) = ran.complaints
        assert str(wrong) in line


def test_a_session_without_figures(make, two):
    """One that ended before it measured anything."""
    ran = main("compare", two(1.0)[0], make("empty"))
    assert ran.code == 1
    assert "holds no figures of a variant" in ran.err


def test_one_session_alone(two):
    """Says what it has."""
    folder = two(1.0)[0]
    for options in ((), ("--variant", "packed,packed")):
        ran = main("compare", folder, *options)
        assert ran.code == 2
        assert "--variant OLD,NEW (it has: packed)" in ran.err


def test_the_same_session_twice(two):
    """Nothing to compare, however alike."""
    old, _ = two(1.0)
    ran = main("compare", old, old)
    assert ran.code == 2
    assert "are the same run" in ran.err
