"""What results say of a model's layer, and when its experts share memory."""

import json

import pytest

from moe_prof import cli, session
from moe_prof.commands import bench, layer
from moe_prof.errors import UsageError
from moe_prof.kernels import memory
from moe_prof.measure import Measurement, VariantTiming
from moe_prof.presets import PRESETS, LayerOptions
from moe_prof.scenario import parse

GIB = 1 << 30


@pytest.fixture
def memory_of(monkeypatch):
    """Let the machine have that much memory."""

    def set_to(size_bytes):
        for module in (layer, memory):
            monkeypatch.setattr(module, "available_bytes", lambda: size_bytes)

    return set_to


def test_a_layer_that_fits_is_left_alone(memory_of):
    """Every expert has its own memory where there is enough."""
    memory_of(64 * GIB)
    scenario = parse("deepseek-v3")
    assert layer.fitted(scenario, ("scalar", "packed", "dispatched")) is scenario


def test_a_layer_that_does_not_fit_shares(memory_of):
    """Twice as many experts as a token chooses keep their own weights."""
    memory_of(24 * GIB)
    found = layer.fitted(parse("deepseek-v3@4"), ("packed", "dispatched"))
    assert (found.distinct_experts, found.label) == (16, "deepseek-v3@4")


def test_what_the_variants_copy_counts(memory_of):
    """The weights alone fit, a second copy of them does not."""
    memory_of(16 * GIB)
    assert not layer.fitted(parse("deepseek-v3"), ("scalar",)).distinct_experts
    assert layer.fitted(parse("deepseek-v3"), ("scalar", "packed")).distinct_experts == 16


def test_a_library_may_copy_every_expert(memory_of):
    """It does not know that experts share."""
    memory_of(8 * GIB)
    assert layer.fitted(parse("deepseek-v3"), ("scalar", "packed")).distinct_experts == 16
    with pytest.raises(UsageError, match=r"deepseek-v3 with 16 distinct experts needs 1\d\.\d GiB"):
        layer.fitted(parse("deepseek-v3"), ("scalar", "./mine.so"))


def test_too_little_memory_even_then(memory_of):
    """The clear memory error."""
    memory_of(GIB // 4)
    with pytest.raises(UsageError, match=r"needs .* GiB of memory, 0.2 GiB are available"):
        layer.fitted(parse("deepseek-v3"), ("packed",))


def test_plain_sizes_never_share(memory_of):
    """Who names sizes means them."""
    memory_of(8 * GIB)
    with pytest.raises(UsageError, match="GiB of memory"):
        layer.fitted(parse("1,7168,2048,256,8"), ("packed",))


def test_few_experts_cannot_share(memory_of):
    """A model with as few experts as would be distinct needs its memory."""
    memory_of(GIB)
    with pytest.raises(UsageError, match="GiB of memory"):
        layer.fitted(parse("mixtral-8x7b"), ("packed", "dispatched"))


@pytest.fixture
def played(monkeypatch, tmp_path):
    """``bench`` of a model with a played measurement: rows, text and the session."""
    monkeypatch.setenv("MOE_PROF_SESSIONS", str(tmp_path / "sessions"))
    monkeypatch.delenv("MOE_PROF_ISA", raising=False)
    requests = []

    def measure(request, progress, *, folder):
        del progress, folder
        requests.append(request)
        second = {(0, 0): 1.0}
        timings = tuple(
            VariantTiming(variant=job.variant, status="ok", samples_s=second, cpu_s=second)
            for job in request.jobs
        )
        return Measurement(
            timings=timings, processes=1, interrupted=False, checked_tokens=1, notes=(),
            elapsed_s=1.0,
        )  # fmt: skip

    monkeypatch.setattr(bench, "measure", measure)

    def go(*argv):
        code = cli.main(["bench", *argv])
        (folder,) = (tmp_path / "sessions").iterdir()
        return code, requests[-1], session.load(folder)

    return go


def test_sharing_is_told_in_words_and_rows(played, memory_of, capsys):
    """First line of the text, a note and a row with a status of its own."""
    memory_of(4 * GIB)
    code, request, saved = played("deepseek-v3@2", "--variant", "scalar")
    assert (code, request.scenario.distinct_experts) == (0, 16)
    assert request.scenario.options == PRESETS["deepseek-v3"].options
    out = " ".join(capsys.readouterr().out.split())
    assert out.startswith("deepseek-v3@2: the whole layer does not fit in memory here")
    (row,) = [row for row in saved.rows if row.metric == "distinct_experts"]
    assert (row.value, row.status, row.unit) == (16.0, "shared_memory", "experts")
    assert any("share the weights of 16 distinct ones" in note for note in saved.manifest.notes)


def test_a_layer_is_described(played, memory_of, capsys):
    """Its source and options stand in a row."""
    memory_of(4 * GIB)
    played("olmoe", "--variant", "scalar", "--format", "json")
    rows = json.loads(capsys.readouterr().out)["rows"]
    (row,) = [row for row in rows if row["metric"] == "layer"]
    assert row["source"].endswith("softmax scores, gates as scored, no shared expert, no residual")
    assert not [row for row in rows if row["metric"] == "distinct_experts"]


def test_options_in_words():
    """Each that differs from none has its words."""
    options = LayerOptions("softmax", 8, 3, 2.5, True, True)
    assert layer.options_text(options) == (
        "softmax scores, 3 of 8 groups, gates x 2.5, a shared expert, residual"
    )
