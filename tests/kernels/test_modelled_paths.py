"""Every case of test_numerics.py on paths that few CPUs have, over models of what this one lacks.

What runs how on a CPU with AVX-512-VNNI: avx2 and avx512_vnni natively (test_numerics.py); avx_vnni
by the same sources in another encoding, amx_int8 with its tiles in C, here; the machine code of
avx_vnni's and avx512_vnni's kernels on an emulated CPU (test_packed_microkernels.py), that of tiles
by a command of its own (tests/emulation/bare_metal_bochs.py). A CPU that has such a path runs it in
test_numerics.py.
"""

import pytest

from moe_prof.kernels.oracle import errors
from moe_prof.kernels.table import BY_NAME
from tests.kernels.cases import MAKERS, case
from tests.kernels.modelled import MODELS, absence, prepare

pytestmark = pytest.mark.skipif(bool(absence()), reason=absence())


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("isa", MODELS)
def test_case_is_the_oracles(modelled_library, isa, name):
    """Choice and output of packed and of dispatched, by two threads."""
    made = case(name)
    for variant in ("packed", "dispatched"):
        spec = BY_NAME[variant]
        with prepare(modelled_library(isa), variant, made.w, threads=2, max_tokens=128) as plan:
            y = plan.forward(made.x)
            assert (plan.info.isa, plan.info.note) == (isa, "")
            assert plan.routing(len(made.x)).ids.tolist() == made.routing.ids.tolist()
        found = errors(y, made.y)
        assert found.rel_rmse <= spec.rel_rmse, (variant, found)
        assert found.worst_error <= spec.worst_token, (variant, found)
