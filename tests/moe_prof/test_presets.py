"""Layers of published models: their sizes, options and the headroom of their sums."""

import pytest

from moe_prof.analysis.work import count_work, headrooms
from moe_prof.errors import UsageError
from moe_prof.kernels.weights import MAX_REDUCTION
from moe_prof.presets import PRESETS, LayerOptions
from moe_prof.scenario import of_preset, parse

each_preset = pytest.mark.parametrize("name", PRESETS)


def test_sizes_are_the_published_ones():
    """D, H, E, K of each model's config."""
    sizes = {name: of_preset(preset).shape[1:] for name, preset in PRESETS.items()}
    assert sizes == {
        "deepseek-v3": (7168, 2048, 256, 8),
        "qwen3-30b-a3b": (2048, 768, 128, 8),
        "mixtral-8x7b": (4096, 14336, 8, 2),
        "olmoe": (2048, 1024, 64, 8),
    }


def test_options_of_deepseek_are_the_published_ones():
    """Sigmoid scores, the best 4 of 8 groups, gates times 2.5, one shared expert."""
    assert PRESETS["deepseek-v3"].options == LayerOptions("sigmoid", 8, 4, 2.5, True, False)


@each_preset
def test_every_preset_says_where_it_is_from(name):
    """The config is named."""
    assert "config.json" in PRESETS[name].source


@each_preset
def test_int32_holds_every_sum(name):
    """No weights and activations of the model's lengths can overflow the accumulators."""
    scenario = of_preset(PRESETS[name])
    found = headrooms(scenario)
    assert all(found[side, 32].is_safe for side in ("d_model", "d_ff"))
    assert max(scenario.d_model, scenario.d_ff) * 127 * 128 < 2**31
    assert max(scenario.d_model, scenario.d_ff) <= MAX_REDUCTION


@each_preset
def test_int16_does_not(name):
    """The same sums would overflow int16: the test above can fail."""
    assert not any(
        h.is_safe for (_, bits), h in headrooms(of_preset(PRESETS[name])).items() if bits == 16
    )


def test_name_is_parsed_with_one_token():
    """A model's name alone is one token, whatever its case."""
    scenario = parse(" DeepSeek-V3 ")
    assert (scenario.label, scenario.num_tokens) == ("deepseek-v3", 1)
    assert scenario.options is PRESETS["deepseek-v3"].options


def test_tokens_follow_an_at_sign():
    """NAME@N is the layer with N tokens, and its label says so."""
    scenario = parse("olmoe@32")
    assert (scenario.label, scenario.num_tokens) == ("olmoe@32", 32)
    assert parse("olmoe@1") == parse("olmoe")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("olmoe@", "after @ the number of tokens"),
        ("olmoe@many", "after @ the number of tokens"),
        ("olmoe@-3", "N (num_tokens) = -3"),
        ("deepseek-v4", "deepseek-v3, qwen3-30b-a3b"),
    ],
)
def test_bad_names_are_refused(text, words):
    """One line says what is wrong."""
    with pytest.raises(UsageError) as caught:
        parse(text)
    assert words in str(caught.value)


def test_work_without_a_shared_expert():
    """Only the chosen experts count where no expert is shared."""
    counts = count_work(parse("mixtral-8x7b"))
    assert counts.expert_macs == 2 * 3 * 4096 * 14336
    assert counts.experts_most == 2
