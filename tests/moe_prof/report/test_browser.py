"""The page in a real browser: no complaint, no request, no sideways scrolling; keys, print."""

from __future__ import annotations

import pytest

from moe_prof.report import read_material, render
from tests.moe_prof.report import made_sessions as made
from tests.moe_prof.report.browser import find_program, running

PROGRAM = find_program()
pytestmark = pytest.mark.skipif(PROGRAM is None, reason="no Chromium is installed")

WIDTHS = (360, 800, 1400)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """One browser for all tests of this file."""
    assert PROGRAM is not None
    with running(PROGRAM, tmp_path_factory.mktemp("profile")) as found:
        yield found


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Files of a report of every kind of session, and of an attack."""
    folder = tmp_path_factory.mktemp("pages")
    made_of = {
        "all": made.save_all(folder / "sessions"),
        "attack": [made.save_attack(folder / "attacked")],
    }
    found = {}
    for name, folders in made_of.items():
        found[name] = folder / f"{name}.html"
        found[name].write_text(render(read_material(folders)).html, encoding="utf-8")
    return found


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["all", "attack"])
def test_fits_and_is_silent(browser, pages, name, width, dark):
    """Nothing on the console, no request but the file, nothing wider than the screen."""
    browser.complaints.clear()
    browser.requests.clear()
    browser.look(width=width, dark=dark)
    browser.open(pages[name])
    page = "document.documentElement"

    assert browser.evaluate(f"{page}.scrollWidth <= {page}.clientWidth")
    assert browser.evaluate("getComputedStyle(document.body).backgroundColor") == (
        "rgb(20, 23, 27)" if dark else "rgb(255, 255, 255)"
    )
    assert browser.complaints == []
    assert set(browser.requests) == {pages[name].absolute().as_uri()}


def test_attack_does_not_run(browser, pages):
    """No dialog, no image, one script, and the name is text."""
    browser.look(width=800)
    browser.open(pages["attack"])
    assert browser.evaluate("document.images.length + document.scripts.length") == 1
    assert "Page.javascriptDialogOpening" not in browser.events
    cells = "Array.from(document.querySelectorAll('th'), cell => cell.textContent)"
    assert made.ATTACK in browser.evaluate(cells)


def test_link_to_a_folded_figure_opens_it(browser, pages):
    """Evidence of a verdict is in a table that is folded at first."""
    browser.look(width=800)
    browser.open(pages["all"])
    found = browser.evaluate(
        "(async () => {"
        " const link = document.querySelector('#bounds td a');"
        " const row = document.querySelector(link.getAttribute('href'));"
        " const before = row.closest('details').open; link.click();"
        " await new Promise(done => setTimeout(done, 50));"
        " return [before, row.closest('details').open, row.textContent.includes('Retiring')]; })()"
    )
    assert found == [False, True, True]


FOCUSED = "document.activeElement.title"
SHOWN = "Array.from(document.querySelectorAll('.boxes button:not([hidden])'), b => b.title)"


def test_flame_graph_by_keyboard(browser, pages):
    """Arrows move, Enter enlarges and hides what is beside, Escape returns."""
    browser.look(width=800)
    browser.open(pages["all"])
    browser.evaluate("document.querySelector('.boxes button').focus()")
    browser.key("ArrowDown")
    browser.key("ArrowDown")
    browser.key("ArrowDown")
    assert browser.evaluate(FOCUSED) == "gemm, 60.0 %"
    browser.key("ArrowRight")
    assert browser.evaluate(FOCUSED) == "store, 20.0 %"
    browser.key("Enter")
    assert browser.evaluate(SHOWN) == [
        "all, 100.0 %", "thread 0, 80.0 %", "main, 80.0 %", "store, 20.0 %",
    ]  # fmt: skip
    assert browser.evaluate("document.activeElement.style.width") == "100%"
    browser.key("Escape")
    assert "gemm, 60.0 %" in browser.evaluate(SHOWN)


def test_flame_graph_finds_functions(browser, pages):
    """By a part of the name, in any case; the number is told."""
    browser.look(width=800)
    browser.open(pages["all"])
    hits = browser.evaluate(
        "(() => { const input = document.querySelector('.flame input'); input.value = 'GEM';"
        " input.dispatchEvent(new Event('input'));"
        " return [document.querySelectorAll('.hit').length,"
        " document.querySelector('.found').textContent]; })()"
    )
    assert hits == [1, "1 box"]


def test_every_part_can_be_reached_by_tab(browser, pages):
    """The first stop leads past the links to the report."""
    browser.look(width=800)
    browser.open(pages["all"])
    browser.key("Tab")
    assert browser.evaluate("document.activeElement.className") == "skip"
    browser.key("Enter")
    assert browser.evaluate("location.hash") == "#main"
    stops = browser.evaluate(
        "document.querySelectorAll('.boxes button[tabindex=\"0\"]').length"
        " - document.querySelectorAll('.flame').length"
    )
    assert stops == 0  # one stop a graph, whatever the number of its boxes


def test_print_is_light_and_whole(browser, pages):
    """On paper: no links to sections, dark ink on white also for those who prefer dark."""
    browser.look(width=794, dark=True, media="print")
    browser.open(pages["all"])
    style = "getComputedStyle(document.querySelector('{}')).{}"
    assert browser.evaluate(style.format("body", "backgroundColor")) == "rgb(255, 255, 255)"
    assert browser.evaluate(style.format("nav", "display")) == "none"
    assert browser.evaluate(style.format(".scroll", "overflowX")) == "visible"
    assert browser.pdf().startswith(b"%PDF")


def test_texts_stand_out(browser, pages):
    """Text and notes against the page: at least 4.5 to 1 (WCAG 2.2, 1.4.3), light and dark."""
    ratio = """(() => {
      const channel = v => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
      const light = text => text.match(/\\d+/g).slice(0, 3).map(Number).map(channel)
        .reduce((sum, part, at) => sum + part * [0.2126, 0.7152, 0.0722][at], 0);
      const paper = light(getComputedStyle(document.body).backgroundColor);
      return Math.min(...Array.from(document.querySelectorAll('p, a, th, td, figcaption'), e => {
        const ink = light(getComputedStyle(e).color);
        return (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
      })); })()"""
    for dark in (False, True):
        browser.look(width=800, dark=dark)
        browser.open(pages["all"])
        assert browser.evaluate(ratio) >= 4.5
