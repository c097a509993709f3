"""The guest of bare_metal_bochs.py compiles with the kernels as they are; booting takes Bochs."""

import platform
import shutil
import subprocess

import pytest

from moe_prof.kernels.compiler import find_compiler
from tests.emulation.bare_metal_bochs import compile_guest


@pytest.mark.skipif(platform.machine() != "x86_64", reason="x86 only")
def test_guest_links_with_the_kernels(tmp_path):
    """It calls every kernel by its signature, and nothing that only a system has."""
    if find_compiler().is_zig:
        pytest.skip("flags of another kind")
    objects = compile_guest(tmp_path)
    if shutil.which("nm") is None:
        pytest.skip("compiled; nm is not installed (binutils)")
    listed = subprocess.run(["nm", *objects], capture_output=True, text=True, check=True).stdout
    symbols = [line.split()[-2:] for line in listed.splitlines() if len(line.split()) >= 2]
    defined = {name for kind, name in symbols if kind in "TtBbDdRrVvWw"}
    missing = {name for kind, name in symbols if kind == "U"} - defined
    assert missing - {"bss_begin", "bss_end"} == set()  # which link.ld defines
