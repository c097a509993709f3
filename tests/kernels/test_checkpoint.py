"""Weights from checkpoints: found by names, exact, one clear line for what is not as needed."""

import json
import struct

import numpy as np
import pytest

from moe_prof.commands import layer as commands_layer
from moe_prof.errors import InputError, UsageError
from moe_prof.kernels.checkpoint import PATTERNS, check_pattern, has_shared, layer_weights
from moe_prof.kernels.safetensors_file import INDEX, tensors_at
from moe_prof.presets import LayerOptions
from moe_prof.scenario import Checkpoint, Scenario
from tests.kernels.cases import channel_scales

N, D, H, E, K = 2, 48, 16, 6, 2
LAYER = 3
DEEPSEEK = "model.layers.3.mlp"


def bf16(values):
    """The upper halves of f32 values, as their bits."""
    return (np.asarray(values, np.float32).view(np.uint32) >> 16).astype("<u2")


def write(path, tensors):
    """A .safetensors file: (dtype, array) by name."""
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name, (dtype, array) in tensors.items():
        raw = np.ascontiguousarray(array).tobytes()
        offsets = [len(data), len(data) + len(raw)]
        header[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": offsets}
        data += raw
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    return path


def model(*, scales="F32", experts="experts.{e}.{m}_proj", prefix=DEEPSEEK, shared=True):
    """Tensors of one layer and the weights they are of."""
    changes = {"has_shared": shared, "has_residual": False}
    w, _ = channel_scales(N, D, H, E, K, **changes)
    convert = {"F32": lambda s: s, "BF16": bf16}[scales]
    tensors = {
        f"{prefix}.gate.weight": ("F32", w.router),
        f"{prefix}.gate.e_score_correction_bias": ("F32", w.bias),
    }
    for m, number in (("gate", 1), ("up", 3), ("down", 2)):
        for e in range(w.num_stored):
            name = f"{prefix}.{experts.format(e=e, m=m, w=number)}"
            if e == E:
                name = f"{prefix}.shared_experts.{m}_proj"
            tensors[f"{name}.weight"] = ("I8", getattr(w, m)[e])
            tensors[f"{name}.weight_scale"] = (
                scales,
                convert(getattr(w, f"{m}_scale")[e][:, None]),
            )
    return tensors, w


def scenario(path, pattern="", *, shared=True, sizes=(N, D, H, E, K)):
    """The layer with weights from there."""
    options = LayerOptions(has_shared=shared, has_residual=False)
    source = Checkpoint(str(path), LAYER, pattern)
    return Scenario(*sizes, options=options, checkpoint=source)


def assert_equal(found, w):
    """Every array has the same values."""
    for name in ("router", "bias", "gate", "up", "down", "gate_scale", "up_scale", "down_scale"):
        np.testing.assert_array_equal(getattr(found, name), getattr(w, name), err_msg=name)


def test_weights_are_those_of_the_file(tmp_path):
    """Every matrix, scale, router row and bias; the shared expert last."""
    tensors, w = model()
    assert_equal(layer_weights(scenario(write(tmp_path / "a.safetensors", tensors))), w)


def test_bf16_scales_are_read_exactly(tmp_path):
    """A bfloat16 is the upper half of an f32."""
    tensors, w = model(scales="BF16")
    found = layer_weights(scenario(write(tmp_path / "a.safetensors", tensors)))
    cut = (w.gate_scale.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)
    np.testing.assert_array_equal(found.gate_scale, cut)


def test_names_of_mixtral(tmp_path):
    """w1, w3, w2 are gate, up, down; there is neither a bias nor a shared expert."""
    prefix = "model.layers.3.block_sparse_moe"
    tensors, w = model(experts="experts.{e}.w{w}", prefix=prefix, shared=False)
    del tensors[f"{prefix}.gate.e_score_correction_bias"]
    path = write(tmp_path / "a.safetensors", tensors)
    found = layer_weights(scenario(path, shared=False))
    np.testing.assert_array_equal(found.up, w.up)
    np.testing.assert_array_equal(found.bias, 0)
    assert not has_shared(Checkpoint(str(path), LAYER))


def test_own_pattern(tmp_path):
    """Names that are known to nobody else."""
    tensors, w = model(experts="experts.{e}.lin_{m}", prefix="net.3.moe", shared=False)
    path = write(tmp_path / "a.safetensors", tensors)
    pattern = "net.{layer}.moe.experts.{expert}.lin_{matrix}"
    assert_equal(layer_weights(scenario(path, pattern, shared=False)), w)


@pytest.mark.parametrize("index", [True, False], ids=["index", "no index"])
def test_sharded_files(tmp_path, index):
    """Tensors spread over the files of a folder, with an index or without."""
    tensors, w = model()
    names = list(tensors)
    shards = {f"part-{i}.safetensors": names[i::3] for i in range(3)}
    for file, members in shards.items():
        write(tmp_path / file, {name: tensors[name] for name in members})
    if index:
        found = {name: file for file, members in shards.items() for name in members}
        (tmp_path / INDEX).write_text(json.dumps({"weight_map": found}))
    assert_equal(layer_weights(scenario(tmp_path)), w)


def test_files_of_the_formats_own_package(tmp_path):
    """What its writer writes is read."""
    numpy_api = pytest.importorskip("safetensors.numpy")
    tensors, w = model()
    path = tmp_path / "a.safetensors"
    numpy_api.save_file({name: array for name, (_, array) in tensors.items()}, str(path))
    assert_equal(layer_weights(scenario(path)), w)


GATE = f"{DEEPSEEK}.experts.4.gate_proj"
MISMATCHES = {
    "missing expert": (f"{GATE}.weight", None, f"it has no tensor {GATE}.weight"),
    "missing scale": (f"{GATE}.weight_scale", None, f"it has no tensor {GATE}.weight_scale"),
    "missing router": (f"{DEEPSEEK}.gate.weight", None, f"no tensor {DEEPSEEK}.gate.weight"),
    "shape": (
        f"{GATE}.weight", ("I8", np.zeros((H, D + 1), np.int8)),
        f"tensor {GATE}.weight has shape (16, 49), (16, 48) is needed",
    ),
    "not quantized": (
        f"{GATE}.weight", ("BF16", np.zeros((H, D), "<u2")),
        f"tensor {GATE}.weight has dtype BF16, I8 is needed",
    ),
    "scales by group": (
        f"{GATE}.weight_scale", ("F32", np.ones((H, 4), np.float32)), "has shape (16, 4), (16, 1)",
    ),
    "scale of int": (
        f"{GATE}.weight_scale", ("I32", np.ones((H, 1), np.int32)), "has dtype I32, one of F32",
    ),
    "scale not finite": (
        f"{GATE}.weight_scale", ("F32", np.full((H, 1), np.nan, np.float32)), "not finite",
    ),
    "asymmetric": (
        f"{GATE}.weight_zero_point", ("I8", np.zeros((H, 1), np.int8)), "asymmetric weights",
    ),
    "more experts": (
        f"{DEEPSEEK}.experts.6.gate_proj.weight", ("I8", np.zeros((H, D), np.int8)),
        "is of an expert beyond the 6 of scenario",
    ),
    "no shared expert": (
        f"{DEEPSEEK}.shared_experts.gate_proj.weight", None, "has no shared expert, which scenario",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MISMATCHES)
def test_mismatches_name_tensor_and_file(tmp_path, name):
    """One line says which tensor of which file is not as it must be."""
    tensor, replacement, words = MISMATCHES[name]
    tensors, _ = model()
    tensors.pop(tensor, None)
    if replacement is not None:
        tensors[tensor] = replacement
    path = write(tmp_path / "a.safetensors", tensors)
    with pytest.raises(InputError) as caught:
        layer_weights(scenario(path))
    assert words in str(caught.value)
    assert str(path) in str(caught.value)


def test_layer_that_is_not_there(tmp_path):
    """The names that were looked for are told."""
    path = write(tmp_path / "a.safetensors", model()[0])
    with pytest.raises(
        InputError, match=r"layer 9 has no tensor model\.layers\.9\.mlp\.experts\.0"
    ):
        has_shared(Checkpoint(str(path), 9))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "no .safetensors file"),
        (b"\xff" * 64, "no .safetensors file"),
        (struct.pack("<Q", 4) + b"nope", "no .safetensors file"),
        (struct.pack("<Q", 2) + b"[]", "no .safetensors file"),
        (struct.pack("<Q", 10) + b'{"a": {}} ', "entry of tensor a is damaged"),
    ],
)
def test_files_of_other_kinds(tmp_path, content, words):
    """Text, damaged and empty files are told apart from checkpoints."""
    path = tmp_path / "a.safetensors"
    path.write_bytes(content)
    with pytest.raises(InputError, match=words):
        tensors_at(path)


def test_file_that_was_cut_off(tmp_path):
    """A download that stopped is no checkpoint."""
    path = write(tmp_path / "a.safetensors", model()[0])
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(InputError, match="lies outside of the file; is the file cut off"):
        tensors_at(path)


@pytest.mark.parametrize("name", ["none", "empty"])
def test_nothing_there(tmp_path, name):
    """A path that does not exist, a folder without files."""
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=str(tmp_path / name)):
        tensors_at(tmp_path / name)


@pytest.mark.parametrize("pattern", ["a.{layer}.experts.{expert}.x", "experts.{expert}.{matrix}"])
def test_pattern_must_have_its_parts(pattern):
    """What is missing is named with an example."""
    with pytest.raises(UsageError, match="it lacks"):
        check_pattern(pattern)


def test_known_patterns_have_theirs():
    """The check can pass."""
    assert [check_pattern(pattern) for pattern in PATTERNS] == list(PATTERNS)


class Arguments:
    """As the parser leaves them."""

    def __init__(self, weights=None, layer=None, pattern=""):
        self.weights, self.layer, self.pattern = weights, layer, pattern


def test_plain_sizes_take_the_files_shared_expert(tmp_path):
    """N,D,H,E,K say nothing of it, so the file does."""
    path = write(tmp_path / "a.safetensors", model(shared=False)[0])
    found = commands_layer.with_checkpoint(Scenario(N, D, H, E, K), Arguments(path, LAYER))
    assert not found.options.has_shared
    assert found.checkpoint == Checkpoint(str(path), LAYER)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (Arguments(layer=3), "--layer says what of --weights"),
        (Arguments(pattern="x"), "--pattern says what of --weights"),
        (Arguments(weights="x"), "which layer"),
    ],
)
def test_options_that_need_each_other(arguments, words):
    """--layer and --pattern without --weights, --weights without --layer."""
    with pytest.raises(UsageError, match=words):
        commands_layer.with_checkpoint(Scenario(N, D, H, E, K), arguments)
