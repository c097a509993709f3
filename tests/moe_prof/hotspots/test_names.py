"""Short names of C++ functions."""

from __future__ import annotations

import pytest

from moe_prof.hotspots.names import short_name

NAMES = [
    ("main", "main"),
    ("moe::packed::(anonymous namespace)::choose", "moe::packed::choose"),
    ("void moe::f<int, 4>(int const*, std::vector<int>)", "moe::f<int, 4>"),
    ("long moe::gemm_s8<long, 16>(std::vector<long> const&)", "moe::gemm_s8<long, 16>"),
    ("std::vector<long, std::allocator<long> >::operator[](unsigned long) const",
     "std::vector<...>::operator[]"),
    ("std::_Rb_tree<int, std::pair<int const, long>, std::less<int> >::_M_begin()",
     "std::_Rb_tree<...>::_M_begin"),
    ("apply(int) [clone .constprop.0] [clone .cold]", "apply"),
    ("bench::toggle(moe_plan*)::{lambda()#1}::_FUN()", "bench::toggle::{lambda#1}"),
    ("bool operator<(A const&, B const&)", "bool operator<(A const&, B const&)"),
    ("operator()(int) const", "operator()(int) const"),
    ("f<(A)1", "f<(A)1"),
    ("_raw_spin_unlock_irqrestore", "_raw_spin_unlock_irqrestore"),
    ("__libc_start_main@@GLIBC_2.34", "__libc_start_main@@GLIBC_2.34"),
    ("", ""),
]  # fmt: skip


@pytest.mark.parametrize(("function", "expected"), NAMES)
def test_short_names(function, expected):
    """No parameters, no return type, no long template arguments; odd names stay as they are."""
    assert short_name(function) == expected
