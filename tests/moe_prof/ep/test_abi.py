"""The ctypes structures are those of moe_ep.h, field by field, and so are the enumerations."""

import subprocess
from ctypes import sizeof

import pytest

from moe_prof.ep import abi
from moe_prof.errors import BuildError
from moe_prof.kernels.build import SOURCE_DIR
from moe_prof.kernels.compiler import find_compiler

STRUCTURES = {
    "moe_ep_expert": abi.CExpert, "moe_ep_setup": abi.CSetup, "moe_ep_engine_info": abi.CInfo,
    "moe_ep_call": abi.CCall, "moe_ep_window": abi.CWindow, "moe_ep_group": abi.CGroup,
    "moe_ep_workspace": abi.CWorkspace, "moe_ep_span": abi.CSpan, "moe_ep_record": abi.CRecord,
}  # fmt: skip
NUMBERS = {
    **{f"MOE_EP_{name.upper()}": i for i, name in enumerate(abi.STAGES)},
    **{f"MOE_EP_{name.upper()}": i for i, name in enumerate(abi.TRAFFICS)},
    "MOE_EP_STAGES": len(abi.STAGES), "MOE_EP_TRAFFICS": len(abi.TRAFFICS),
    "MOE_EP_TIMEOUT": abi.TIMEOUT, "MOE_EP_ABORTED": abi.ABORTED, "MOE_EP_BUSY": abi.BUSY,
    "MOE_EP_MISMATCH": abi.MISMATCH, "MOE_EP_OVERLAP": abi.OVERLAP,
    "MOE_EP_CACHE_FUSED": abi.CACHE_FUSED, "MOE_EP_ABI_VERSION": abi.ABI_VERSION,
}  # fmt: skip


def test_structures_and_numbers_are_those_of_the_header(tmp_path):
    """Sizes, offsets of all fields by name, values."""
    try:
        compiler = find_compiler()
    except BuildError as error:
        pytest.skip(str(error))
    wanted = {f"sizeof({name})": sizeof(kind) for name, kind in STRUCTURES.items()} | NUMBERS
    for name, kind in STRUCTURES.items():
        for field, *_ in kind._fields_:
            wanted[f"offsetof({name}, {field})"] = getattr(kind, field).offset
    checks = "\n".join(
        f'static_assert({what} == {value}, "{what}");' for what, value in wanted.items()
    )
    source = tmp_path / "check.cpp"
    source.write_text(f'#include <cstddef>\n#include "moe_ep.h"\n{checks}\n')
    argv = [*compiler.argv, "-std=c++17", "-fsyntax-only", f"-I{SOURCE_DIR / 'include'}"]
    done = subprocess.run([*argv, str(source)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
