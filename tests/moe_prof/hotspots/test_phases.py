"""Phases by the marks in the sources, else by the names of functions."""

from __future__ import annotations

import re

import pytest

from moe_prof.hotspots.phases import PHASES, by_name, marked_lines, phase_of
from moe_prof.kernels.build import SOURCE_DIR
from tests.moe_prof.hotspots.stack_making import stack

SOURCE = """\
namespace moe {
class Plan {
    void run(int thread) {
        before();
        timers.enter(thread, MOE_PHASE_GATE_UP);
        for (;;) {
            work("}");
        }
        timers.enter(thread, MOE_PHASE_DOWN);
        more(); // }
        timers.leave(thread);
        barrier(thread);
    }
    void other() {
        work();
    }
};
void free(int thread) {
    if (thread) {
        timers_.enter(thread, MOE_PHASE_BUCKET);
        fill();
    }
    after();
}
int last;
}
"""


def line_of(name: str, text: str) -> int:
    """The first line of one of the sources that contains a text."""
    lines = (SOURCE_DIR / "cpp" / name).read_text(encoding="utf-8").splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


def test_marks_hold_to_the_next_one_or_the_function_s_end():
    """Braces in texts and comments do not count; leaving and waiting end a phase."""
    found = marked_lines(SOURCE)
    assert found == {
        **dict.fromkeys((5, 6, 7, 8), "gate_up"),
        **dict.fromkeys((9, 10), "down"),
        **dict.fromkeys(range(20, 25), "bucket"),
    }


def test_every_mark_of_the_sources_is_read():
    """Each phase timer of the real sources gives its own line the phase it names."""
    seen = set()
    for path in (SOURCE_DIR / "cpp").rglob("*"):
        if path.suffix not in {".cpp", ".h"}:
            continue
        text = path.read_text(encoding="utf-8")
        found = marked_lines(text)
        for number, line in enumerate(text.splitlines(), 1):
            mark = re.search(r"enter\(.*MOE_PHASE_(\w+)\)", line)
            if mark:
                assert found.get(number) == mark[1].lower(), f"{path}:{number}"
                seen.add(mark[1].lower())
    assert seen == set(PHASES)


@pytest.mark.parametrize(
    ("name", "text", "phase"),
    [
        ("packed/expert_rows.cpp", "multiply(mk, x + m", "gate_up"),
        ("packed/expert_rows.cpp", "multiply(products, h + m", "down"),
        ("packed/expert_rows.cpp", "mk.quantize(", "activation"),
    ],
)
def test_one_microkernel_serves_two_phases(name, text, phase):
    """The line of the call decides, where the microkernel's own name cannot."""
    place = f"moe_bench:/build/kernels/cpp/{name}:{line_of(name, text)}"
    found = stack(f"moe::apply_to_block@{place}", "moe_f32_qs8_quantize__avx2@moe_bench")
    assert phase_of(found) == phase


NAMES = [
    ("moe_f32_router_6x16__avx2", "router"),
    ("moe::packed::CandidateRouter::quantize_row(float const*, unsigned long)", "router"),
    ("moe_f32_qs8_quantize__avx2", "quantize"),
    ("moe_s32_f32_dequantize__avx2", "down"),
    ("moe_s32_swiglu_16__avx2", "activation"),
    ("moe_f32_combine__avx2", "combine"),
    ("moe::packed::Buckets::fill(int const*, int, int)", "bucket"),
    ("moe_qs8_gemm_4x16c4__avx2", ""),
    ("moe::int8_products", ""),
    ("moe::packed::f(moe_microkernels const&, moe::RouterTable const&)", ""),
    ("std::quantize", ""),
    ("router", ""),
    ("bench::run", ""),
]


@pytest.mark.parametrize(("name", "phase"), NAMES)
def test_names(name, phase):
    """Names of this project only; types of parameters do not mislead; shared ones stay unknown."""
    assert by_name(name) == phase


def test_callers_that_cannot_be_relied_on():
    """Then the function alone decides."""
    found = stack("moe::packed::Buckets::fill@a", "moe_qs8_gemm_4x16c4__avx2@a")
    assert (phase_of(found), phase_of(found, callers=False)) == ("bucket", "")
