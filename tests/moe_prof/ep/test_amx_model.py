"""The operator on the AMX path, whose tiles are a C model: the same bits as on another path."""

import numpy as np
import pytest

from moe_prof.ep import native, prepared
from moe_prof.ep.group import Options
from tests.kernels import modelled
from tests.moe_prof.ep.made import gathered, layer, run, tokens

CORE = ("cpus", "wait_policy", "thread_pool")

pytestmark = [
    pytest.mark.slow,  # a library is compiled
    pytest.mark.skipif(bool(modelled.absence()), reason=modelled.absence()),
]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """The path's library over the model of tiles."""
    cpp = modelled.CPP
    sources = [*(cpp / f"{name}.cpp" for name in CORE), *sorted((cpp / "ep").glob("*.cpp"))]
    out = tmp_path_factory.mktemp("amx") / "libmoe_model.so"
    return native.load(modelled.compiled("amx_int8", sources, out))


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
