"""The AMX path as a whole: its library with a model of the tiles, and its fallback without them.

The model is that of tests/emulation/amx_shim.h. The rest of the path needs a CPU with AVX-512-VNNI.
"""

import errno
import os
import subprocess
import sys

import numpy as np
import pytest

from moe_prof import kernels
from moe_prof.kernels.build import SOURCE_DIR
from moe_prof.kernels.compiler import find_compiler
from moe_prof.kernels.features import read_cpu, supported
from moe_prof.kernels.oracle import errors
from moe_prof.kernels.table import BY_NAME
from tests.kernels.isa_kernels import PACKED, PATHS
from tests.kernels.layers import filled, layer

CPP = SOURCE_DIR / "cpp"
EMULATION = os.path.join(os.path.dirname(__file__), "..", "emulation")
AMX = next(path for path in PATHS if path.isa == "amx_int8")
VNNI = next(path for path in PATHS if path.isa == "avx512_vnni")
MANY, ONE = "qu8s8_gemm_32x32c64__amx_int8", "qu8s8_gemm_1x32c4__avx512_vnni"
FLAGS = (
    "-std=c++17", "-O1", "-ffp-contract=off", "-fPIC", "-shared", "-pthread",
    "-Wno-unknown-pragmas", '-DMOE_ISA_NAME="amx_int8"', '-DMOE_AMX_SHIM="amx_shim.h"',
    "-DMOE_CHECK_MICROKERNELS", f"-I{EMULATION}", f"-I{CPP}", f"-I{SOURCE_DIR / 'include'}",
)  # fmt: skip
PLAN = ("plan", "parallel", "cpus", "wait_policy", "thread_pool", "variants/packed",
        "variants/dispatched")  # fmt: skip

pytestmark = pytest.mark.skipif(
    "avx512_vnni" not in supported(read_cpu()), reason="this CPU has no AVX-512-VNNI path"
)


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """The path's library over the model of tiles."""
    out = tmp_path_factory.mktemp("amx") / "libmoe_model.so"
    sources = [*(CPP / f"{name}.cpp" for name in PLAN), *sorted(PACKED.glob("*.cpp"))]
    sources += [*AMX.sources(), *AMX.tables()]
    argv = [*find_compiler().argv, *FLAGS, *VNNI.flags, "-o", str(out), *map(str, sources)]
    subprocess.run(argv, check=True, capture_output=True)
    return out


def prepare(library, variant, w, **options):
    """A plan of the library."""
    return kernels.variant(f"{library}:{variant}").prepare(w, **options)


def assert_oracles_result(y, w, x, variant):
    """Within the tolerance that the table states."""
    found = errors(y, kernels.reference(w, x))
    assert found.rel_rmse <= BY_NAME[variant].rel_rmse, found
    assert found.worst_error <= BY_NAME[variant].worst_token, found


@pytest.mark.parametrize("variant", ["packed", "dispatched"])
@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize(
    "shape",
    [(1, 33, 31, 9, 3), (7, 100, 65, 9, 3), (40, 64, 128, 3, 1), (33, 257, 129, 5, 5),
     (129, 96, 33, 4, 2), (20, 1031, 173, 5, 2)],
)  # fmt: skip
def test_output_is_the_oracles(library, variant, threads, shape):
    """Buckets of one row to 32 rows and more, sizes around the edges of tiles, every path."""
    w, x = layer(*shape)
    with prepare(library, variant, w, threads=threads) as plan:
        y = plan.forward(x)
        assert (plan.info.isa, plan.info.microkernel, plan.info.note) == ("amx_int8", MANY, "")
        np.testing.assert_array_equal(plan.forward(x), y)
    assert_oracles_result(y, w, x, variant)


@pytest.mark.parametrize("variant", ["packed", "dispatched"])
@pytest.mark.parametrize("value", [-128, 127])
def test_extreme_weights(library, variant, value):
    """All weights at one end of the int8 range, buckets of tiles."""
    w, x = layer(50, 100, 33, 9, 3)
    w = filled(w, value)
    with prepare(library, variant, w, threads=2) as plan:
        assert_oracles_result(plan.forward(x), w, x, variant)


def test_every_number_of_tokens_for_one_expert(library):
    """One expert and no shared one: a bucket has as many rows as there are tokens."""
    w, x = layer(40, 70, 50, 1, 1, has_shared=False)
    expected = kernels.reference(w, x)
    with prepare(library, "packed", w, threads=1) as plan:
        for n in range(1, 41):
            assert errors(plan.forward(x[:n]), expected[:n]).rel_rmse <= 1e-3


def test_plans_in_turn_set_their_tiles_again(library):
    """Two plans on one thread, each with another number of rows."""
    w, x = layer(24, 70, 50, 1, 1, has_shared=False)
    expected = kernels.reference(w, x)
    options = {"threads": 1}
    with (
        prepare(library, "packed", w, **options) as a,
        prepare(library, "packed", w, **options) as b,
    ):
        for _ in range(2):
            assert errors(a.forward(x[:5]), expected[:5]).rel_rmse <= 1e-3
            assert errors(b.forward(x), expected).rel_rmse <= 1e-3


def test_info_of_one_token_names_its_kernel(library):
    """Where no bucket can have two rows, no tile runs."""
    w, _ = layer(1)
    with prepare(library, "packed", w, max_tokens=1) as plan:
        assert (plan.info.microkernel, plan.info.mr) == (ONE, 1)


_CHILD = """
import sys
from moe_prof import kernels
from moe_prof.kernels.oracle import errors
from tests.kernels.layers import layer
w, x = layer(40, 64, 128, 3, 1)
with kernels.variant(sys.argv[1]).prepare(w, threads=2) as plan:
    print(errors(plan.forward(x), kernels.reference(w, x)).rel_rmse <= 1e-3)
    print(plan.info.isa, plan.info.microkernel, plan.info.note, sep="|")
"""


@pytest.mark.parametrize(
    ("number", "word"),
    [(errno.EOPNOTSUPP, "not supported"), (errno.EPERM, "not permitted"),
     (errno.ENOSYS, "not implemented"), (errno.EINVAL, "Invalid argument")],
)  # fmt: skip
def test_refused_tiles_fall_back_and_say_so(library, number, word):
    """Whatever the system answers, the AVX-512-VNNI kernels run and plan info has the reason."""
    done = subprocess.run(
        [sys.executable, "-c", _CHILD, f"{library}:packed"], capture_output=True, text=True,
        check=True, env=os.environ | {"AMX_SHIM_REFUSES": str(number)},
    )  # fmt: skip
    right, said = done.stdout.splitlines()
    isa, microkernel, note = said.split("|")
    assert (right, isa, microkernel) == ("True", "avx512_vnni", "qu8s8_gemm_8x32c4__avx512_vnni")
    assert note.startswith("tiles were refused (arch_prctl(ARCH_REQ_XCOMP_PERM, 18): ")
    assert word in note
    assert note.endswith("microkernels of avx512_vnni run")


REQUEST = """
#include "tile_permission.h"
#include <cstdio>
#include <cstring>
int main() { std::puts(moe::request_tiles() == 0 ? "" : std::strerror(moe::request_tiles())); }
"""


def test_system_refuses_tiles_that_the_cpu_lacks(tmp_path):
    """The real request, answered by this system."""
    if "amx_tile" in read_cpu().flags:
        pytest.skip("this CPU has tiles")
    source, program = tmp_path / "request.cpp", tmp_path / "request"
    source.write_text(REQUEST)
    argv = [*find_compiler().argv, "-std=c++17", f"-I{CPP}", "-o", str(program), str(source)]
    subprocess.run(argv, check=True, capture_output=True)
    done = subprocess.run([program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() not in ("", "Success")
