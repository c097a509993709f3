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
from moe_prof.kernels.features import read_cpu
from moe_prof.kernels.oracle import errors, routing
from moe_prof.kernels.table import BY_NAME
from tests.kernels.layers import filled, layer
from tests.kernels.modelled import absence, prepare
from tests.kernels.test_dispatched import SHAPES

CPP = SOURCE_DIR / "cpp"
MANY, ONE = "qu8s8_gemm_32x32c64__amx_int8", "qu8s8_gemm_1x32c4__avx512_vnni"

pytestmark = pytest.mark.skipif(bool(absence()), reason=absence())


@pytest.fixture(scope="module")
def library(modelled_library):
    """The path's library over the model of tiles."""
    return modelled_library("amx_int8")


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


@pytest.mark.parametrize(("path", "threads"), SHAPES)
def test_dispatched_takes_each_path(library, path, threads):
    """The choice of every row of the table of thresholds; the bits are those of packed."""
    w, x = layer(*SHAPES[path, threads])
    with prepare(library, "packed", w, threads=1, max_tokens=len(x)) as plan:
        expected = plan.forward(x)
    with prepare(library, "dispatched", w, threads=threads, max_tokens=len(x)) as plan:
        assert plan.info.path == path
        assert plan.forward(x).tobytes() == expected.tobytes()


def test_router_by_tiles(library):
    """S4's router, on tiles of int16: the experts are the oracle's."""
    w, x = layer(96, 512, 16, 512, 2)
    with prepare(library, "dispatched", w, threads=2) as plan:
        y = plan.forward(x)
        assert plan.routing(96).ids.tolist() == routing(w, x).ids.tolist()
    assert_oracles_result(y, w, x, "dispatched")


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
from moe_prof.kernels.oracle import errors, routing
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
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>

// A sandbox's filter: arch_prctl is refused with that error number.
static bool filter(int error) {
    sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_arch_prctl, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<unsigned>(error)),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    sock_fprog program{4, rules};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

int main(int argc, char **) {
    if (argc > 1 && !filter(EPERM)) {
        return 77;
    }
    const int error = moe::request_tiles();
    std::puts(error == 0 ? "" : std::strerror(error));
}
"""


@pytest.fixture(scope="module")
def request_tiles(tmp_path_factory):
    """The program that makes the real request, with an argument under a filter that refuses it."""
    folder = tmp_path_factory.mktemp("request")
    source, program = folder / "request.cpp", folder / "request"
    source.write_text(REQUEST)
    argv = [*find_compiler().argv, "-std=c++17", f"-I{CPP}", "-o", str(program), str(source)]
    subprocess.run(argv, check=True, capture_output=True)
    return program


def test_system_refuses_tiles_that_the_cpu_lacks(request_tiles):
    """The real request, answered by this system."""
    if "amx_tile" in read_cpu().flags:
        pytest.skip("this CPU has tiles")
    done = subprocess.run([request_tiles], capture_output=True, text=True, check=True)
    assert done.stdout.strip() not in ("", "Success")


def test_sandbox_refuses_the_request(request_tiles):
    """A filter on system calls, as in containers: its answer is the reason."""
    done = subprocess.run([request_tiles, "x"], capture_output=True, text=True, check=False)
    if done.returncode == 77:
        pytest.skip("this system lets no process filter its system calls")
    assert (done.returncode, done.stdout.strip()) == (0, os.strerror(errno.EPERM))
