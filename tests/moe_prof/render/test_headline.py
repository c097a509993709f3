"""What a page says first, from hand-made rows."""

from moe_prof.analysis.fastest import SLOWER
from moe_prof.analysis.query import RowIndex
from moe_prof.render.headline import answer, fastest_text, oversubscribed_line
from tests.moe_prof.topdown.made import row


def timed(name, time_s, slower=1.0, *, width=0.1):
    """A timed variant with a verdict."""
    return [
        row("time", time_s, name, n=9), row("speedup", 3.0, name), row(SLOWER, slower, name),
        row("time_ci_low", time_s * (1 - width / 2), name),
        row("time_ci_high", time_s * (1 + width / 2), name),
        row("verdict", None, name, source="l2_bound"),
        row("verdict_evidence", None, name, source=f"evidence of {name}"),
        row("verdict_advice", None, name, source="reuse"),
        row("roofline_fraction", 0.5, name),
    ]  # fmt: skip


def test_one_leader():
    """Its time and speedup."""
    index = RowIndex([*timed("scalar", 3.0), *timed("packed", 1.0, 0.0)])
    assert fastest_text(index, ["scalar", "packed"]) == (
        "Fastest here is packed: 1.00 s a forward, 3.00 times scalar"
    )


def test_the_only_one_that_was_timed():
    """The others failed, so it is not called the fastest."""
    index = RowIndex(timed("scalar", 3.0))
    assert (
        fastest_text(index, ["scalar", "packed"]) == "Only scalar could be timed: 3.00 s a forward"
    )
    assert fastest_text(index, ["scalar"]) == "Fastest here is scalar: 3.00 s a forward"


def test_several_leaders():
    """Neither speedup nor ceiling is claimed for one of them; the cause names its variant."""
    index = RowIndex([*timed("openmp", 1.1, 0.0), *timed("packed", 1.0, 0.0)])
    assert fastest_text(index, ["openmp", "packed"]).startswith(
        "Fastest, not separable: packed, openmp (1.00 s a forward; "
    )
    (text,) = answer(index, ["openmp", "packed"])
    assert ". packed is l2 bound: evidence of packed" in text.plain
    assert "ceilings" not in text.plain


def test_a_noisy_leader():
    """Named with the lowest median, not as the fastest."""
    index = RowIndex(timed("packed", 1.0, 0.0, width=3.0))
    assert fastest_text(index, ["packed"]) == (
        "Which is fastest cannot be told, too noisy: lowest median of packed, 1.00 s a forward"
    )


def unknown(name):
    """A verdict that says nothing."""
    return [
        row("verdict", None, name, source="unknown"),
        row("verdict_evidence", None, name, source="numba is not simulated"),
    ]


def test_a_numba_stage_in_front_leaves_a_verdict():
    """Why it has none, and that of the fastest C++ stage."""
    rows = [*timed("numba-matricized", 1.0, 0.0), *unknown("numba-matricized")]
    rows += [*timed("packed", 2.0), *timed("openmp", 3.0)]
    (text,) = answer(RowIndex(rows), ["openmp", "packed", "numba-matricized"])
    assert "could not be told: numba is not simulated. Next: reuse." in text.plain
    assert text.plain.endswith(
        "The fastest C++ stage, packed (2.00 s), is l2 bound: evidence of packed. Next: reuse."
    )


def test_no_native_verdict_is_made_up():
    """Where the C++ stages are not known either."""
    rows = [*timed("numba-matricized", 1.0, 0.0), *unknown("numba-matricized")]
    rows += [*timed("packed", 2.0), *unknown("packed")]
    (text,) = answer(RowIndex(rows), ["packed", "numba-matricized"])
    assert "C++" not in text.plain


def test_small_shares_of_a_named_ceiling():
    """Never '0 % of ceilings'."""
    words = "this machine's best exact int8 rate, by avx2"
    rows = [*timed("packed", 1.0, 0.0), row("roofline_fraction", 0.003, "packed")]
    rows.append(row("roofline_ceiling", None, "packed", source=words))
    (text,) = answer(RowIndex(rows), ["packed"])
    assert f", 0.3 % of {words}. It is l2 bound" in text.plain


def test_nothing_timed():
    """No headline."""
    assert fastest_text(RowIndex([]), ["scalar"]) == ""


def test_oversubscribed_variants_are_named():
    """Those with the mark, with what to do."""
    bad = row("threads", 9.0, "openmp", status="out_of_bounds", source="oversubscribed: 9 on 2")
    index = RowIndex([bad, row("threads", 1.0)])
    (line,) = oversubscribed_line(index, ["scalar", "openmp"])
    assert line.plain == "oversubscribed: 9 on 2: openmp; use fewer --threads"
    assert oversubscribed_line(index, ["scalar"]) == []
