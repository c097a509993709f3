"""Targets: finding their compiler, and what is said of a build that is nothing for them."""

from __future__ import annotations

import shutil
import sys

import pytest

from moe_prof.errors import BuildError, UnavailableError
from moe_prof.kernels.target import target
from moe_prof.kernels.trial import try_emulated

RISCV64 = target("riscv64")


@pytest.mark.parametrize("wish", ["no-such-compiler", "/tmp"])
def test_missing_compiler_is_unavailable(monkeypatch, wish):
    """The wish is named with what to install: nothing is wrong with the request or the sources."""
    monkeypatch.setenv("CXX_RISCV64", wish)
    with pytest.raises(UnavailableError) as caught:
        RISCV64.compiler()
    assert f"(CXX_RISCV64={wish}); install one" in str(caught.value)
    assert caught.value.exit_code == 3


def test_no_compiler_at_all(monkeypatch, tmp_path):
    """Those that were looked for are listed."""
    monkeypatch.delenv("CXX_RISCV64", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UnavailableError, match=r"clang\+\+-17 and later, .*apt install clang-19"):
        RISCV64.compiler()


@pytest.mark.parametrize("wish", ["clang++ '", 'clang++ "-O2'])
def test_open_quote_is_named(monkeypatch, wish):
    """A command line that cannot be split is told in one line."""
    monkeypatch.setenv("CXX_RISCV64", wish)
    with pytest.raises(BuildError, match=r"CXX_RISCV64=.*No closing quotation; install one"):
        RISCV64.compiler()


def test_driver_of_another_architecture_is_named(tmp_path):
    """A native compiler under the name of a cross compiler: what it made is not run."""
    shutil.copy(sys.executable, tmp_path / "moe_bench-portable")
    with pytest.raises(BuildError) as caught:
        try_emulated(tmp_path, RISCV64)
    said = str(caught.value)
    assert f"portable: {tmp_path}/moe_bench-portable is " in said
    assert said.endswith("; CXX_RISCV64 names another compiler")
    assert "avx2" not in said


def test_build_without_drivers_is_named(tmp_path):
    """A compiler that makes nothing gets one line, not a list of all paths."""
    with pytest.raises(BuildError) as caught:
        try_emulated(tmp_path, RISCV64)
    assert str(caught.value) == (
        "no path of the kernels for riscv64 runs here: the compiler made no driver; "
        "CXX_RISCV64 names another compiler"
    )
