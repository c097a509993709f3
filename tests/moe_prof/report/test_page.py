"""The page: its sections, that it is sound HTML, and that nothing from outside becomes markup."""

from __future__ import annotations

import base64
import csv
import io

import pytest

from moe_prof import session as sessions
from moe_prof.report import SECTIONS, read_material, render
from moe_prof.report.material import material_of
from moe_prof.report.parts import Missing
from moe_prof.scenario import Scenario
from tests.moe_prof.report import made_sessions as made
from tests.moe_prof.report.html_reading import broken_rules, read
from tests.moe_prof.topdown.made import row


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """One session of every kind."""
    return made.save_all(tmp_path_factory.mktemp("sessions"))


@pytest.fixture(scope="module")
def page(folders):
    """The report of all of them."""
    return render(read_material(folders))


@pytest.fixture(scope="module")
def attacked(tmp_path_factory):
    """The report of a session whose every text is an attack."""
    return render(read_material([made.save_attack(tmp_path_factory.mktemp("attack") / "s")]))


def test_page_is_sound(page):
    """Balanced, identifiers once, links lead somewhere, tables and pictures have their words."""
    assert broken_rules(page.html) == []


def test_all_sections_are_there(page):
    """Sessions of every kind leave nothing out."""
    assert (page.sections, page.left_out) == (tuple(s.title for s in SECTIONS), ())


def test_summary_comes_first_and_in_words(page):
    """Before every table: the fastest stage, and what bounds it."""
    text = read(page.html).text
    answer = text.index("Fastest here is packed: 100 us a forward, 40.0 times scalar")
    assert answer < text.index("Stages: times of one forward")
    assert "It is instruction bound: Retiring 60.0 % of slots" in text


@pytest.mark.parametrize("kind", ["topdown", "bench", "hotspots", "import", "ep"])
def test_each_kind_of_session_alone(folders, kind):
    """Sections without data are named with the reason, in the page and to the caller."""
    found = render(read_material([path for path in folders if path.name == kind]))
    text = read(found.html).text

    assert broken_rules(found.html) == []
    assert len(found.sections) + len(found.left_out) == len(SECTIONS)
    assert found.left_out
    assert all(f"{title} : {reason}" in text for title, reason in found.left_out)


def test_session_without_rows(tmp_path):
    """Its machine and command are still worth a page."""
    found = render(read_material([made.save(tmp_path / "s", "bench", [])]))
    assert broken_rules(found.html) == []
    assert "Test CPU" in found.html


def test_nothing_from_outside_becomes_markup(attacked):
    """The page stays sound, without images, handlers or a second script."""
    assert broken_rules(attacked.html) == []
    assert read(attacked.html).tags["img"] == 0


def test_names_from_outside_are_shown_as_they_are(attacked):
    """Escaped, not dropped: variant, machine, argv, note, reason, function."""
    found = read(attacked.html)
    assert found.text.count(made.ATTACK) >= 8
    titles = [value for tag, name, value in found.attributes if (tag, name) == ("button", "title")]
    assert f"{made.ATTACK}, 60.0 %" in titles


def test_explanations_link_to_their_figures(page):
    """A verdict's evidence leads to the row that it was read from."""
    links = {v for tag, n, v in read(page.html).attributes if (tag, n) == ("a", "href")}
    material = page.html.partition('id="bounds"')[2].partition("</section>")[0]
    assert 'href="#s1-r' in material
    assert any(link.startswith("#s1-r") for link in links)


def test_missing_is_a_dash_with_its_reason(page):
    """Never 0: the list of all figures says why."""
    text = read(page.html).text
    assert "scalar cycles no PMU" in text  # what could not be had
    assert "cycles scalar - unavailable, not_supported no PMU" in text


def test_data_can_be_saved(page, folders):
    """The link holds the rows as CSV, all of them where they are few."""
    address = next(v for _, n, v in read(page.html).attributes if v.startswith("data:text/csv"))
    text = base64.b64decode(address.partition("base64,")[2]).decode()
    rows = list(csv.DictReader(io.StringIO(text)))
    assert len(rows) == sum(len(sessions.load(folder).rows) for folder in folders)


def test_many_large_sessions_stay_light(tmp_path):
    """Lists, graphs and data are cut, and the page says so."""
    stacks = {f"v{n}": made.small_profile() for n in range(30)}
    variants = {f"variant-{n}": 1e-3 for n in range(5)}
    rows = made.timing_rows(variants) + made.topdown_rows(variants)
    rows += [row("time", 1e-3, "variant-0", repeat=n, source="x" * 900) for n in range(600)]
    rows += [row("Self", 0.1, f"v{n}", scope="function", source="f" * 900) for n in range(600)]
    paths = [made.save(tmp_path / f"s{n}", "topdown", rows, profiles=stacks) for n in range(2)]
    found = render(read_material(paths))

    assert broken_rules(found.html) == []
    assert "are left out to keep this page light" in found.html


def test_equal_sessions_are_told_apart(tmp_path):
    """Two of one command get numbers; one named twice is taken once."""
    one, two = (made.save(tmp_path / n, "bench", made.timing_rows()) for n in "ab")
    material = read_material([one, two, one])
    assert [source.label for source in material.sources] == ["S3 bench (1)", "S3 bench (2)"]
    assert broken_rules(render(material).html) == []


def test_interrupted_run_says_so(tmp_path):
    """In the summary, before its figures."""
    folder = made.save(tmp_path / "s", "bench", made.timing_rows())
    manifest = folder / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"complete"', '"partial"'))
    assert "Careful: This run was interrupted" in read(render(read_material([folder])).html).text


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.name)
def test_section_gives_a_reason_or_something_to_show(section, tmp_path):
    """On a session without rows a section is left out with a sentence, or shows what it has."""
    context = section.make(material_of([sessions.load(made.save(tmp_path / "s", "bench", []))]))
    assert context.reason if isinstance(context, Missing) else context


def test_accuracy_is_studied_when_asked_for(tmp_path):
    """Without the wish there is the headroom alone, with it errors and sums that were met."""
    tiny = Scenario(4, 32, 16, 4, 2)
    folder = made.save(tmp_path / "s", "bench", made.timing_rows(), scenario=tiny)
    without, with_it = (
        read(render(read_material([folder], accuracy=wish)).html).text for wish in (False, True)
    )
    assert "Headroom of the accumulators" in without
    assert "one scale for all tokens" not in without
    assert "one scale for all tokens" in with_it
    assert "largest sum met" in with_it


def test_threads_are_shown_over_time_or_the_page_says_why_not(tmp_path):
    """A picture for the variant that has steps, a reason for the other."""
    steps = [
        row("timeline_time", 4e-5, "packed", unit="s"),
        *(row("phase_span", 3e-5, "packed", unit="s", time_s=0.0, phase="down", thread=thread)
          for thread in "01"),
    ]  # fmt: skip
    rows = made.timing_rows() + made.topdown_rows() + steps
    html = render(read_material([made.save(tmp_path / "s", "topdown", rows)])).html
    assert broken_rules(html) == []
    section = html.partition('id="threads"')[2].partition("</section>")[0]
    assert "packed: one forward of 40.0 us, step by step." in section
    assert "No timeline of" in section
    assert "scalar" in section.partition("No timeline of")[2].partition(":")[0]
