"""The operator on the AMX path, whose tiles are a C model: the same bits as on another path."""

import os
import subprocess

import numpy as np
import pytest

from moe_prof.ep import native, prepared
from moe_prof.ep.group import Options
from moe_prof.kernels.compiler import find_compiler
from moe_prof.kernels.features import read_cpu, supported
from tests.kernels.test_amx_path import AMX, CPP, FLAGS, VNNI
from tests.moe_prof.ep.made import gathered, layer, run, tokens

CORE = ("cpus", "wait_policy", "thread_pool")

pytestmark = [
    pytest.mark.slow,  # a library is compiled
    pytest.mark.skipif(
        "avx512_vnni" not in supported(read_cpu()), reason="this CPU has no AVX-512-VNNI path"
    ),
]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """The path's library over the model of tiles."""
    out = tmp_path_factory.mktemp("amx") / "libmoe_model.so"
    sources = [*(CPP / f"{name}.cpp" for name in CORE), *sorted((CPP / "ep").glob("*.cpp"))]
    sources += [*AMX.sources(), *AMX.tables()]
    argv = [*find_compiler().argv, *FLAGS, *VNNI.flags, "-o", str(out), *map(str, sources)]
    subprocess.run(argv, check=True, capture_output=True, env=os.environ)
    return native.load(out)


@pytest.mark.parametrize("rows", [1, 2, 3, 16, 17, 33, 70])
def test_tiles_give_the_bits_of_the_other_paths(model, monkeypatch, rows):
    """Fewer rows than tiles are worth, partial tiles, several blocks; in caches and not."""
    made = layer(h=530, n=102, experts=2, n_shared=70)
    t = tokens(made, rows, k=2, skip=0.1)
    expected = gathered(run(made, [t]))
    monkeypatch.setattr(prepared, "library", lambda isa, progress: model)
    for options in (Options(), Options(cache_fused=False)):
        for got, wanted in zip(gathered(run(made, [t], options=options)), expected, strict=True):
            np.testing.assert_array_equal(got, wanted)
