"""The example of a user's own kernel, built as its README says, and versions that misbehave."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from moe_prof import cli, kernels
from moe_prof.collectors import callgrind
from moe_prof.errors import WorkloadError
from moe_prof.kernels import build as kernel_build
from moe_prof.kernels.build import SOURCE_DIR
from moe_prof.kernels.compiler import find_cmake, find_ninja
from moe_prof.kernels.oracle import errors
from moe_prof.topdown import counted
from tests.kernels.cases import MAKERS, case
from tests.kernels.layers import layer
from tests.kernels.test_moe_bench import compile_cpp

EXAMPLE = Path(__file__).parents[2] / "examples" / "user_kernel"
SHAPE = "5,33,31,9,3"
CASES = [name for name in MAKERS if name.startswith(("option", "scales per", "tokens zeros"))]

MISDEEDS = {
    "near": "y[w.d_model] = 1.0f;",
    "before": "y[-t * w.d_model - 1] = 1.0f;",
    "far": "y[1 << 20] = 1.0f;",
    "input": "const_cast<float *>(x)[0] = 1.0f;",
    "weights": "const_cast<int8_t *>(w.gate)[0] = 1;",
    "crash": "*static_cast<volatile int *>(nullptr) = 1;",
    "wrong": "y[0] += 1.0f;",
    "abort": "std::abort();",
}
"""What is done after the last token."""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """The example, built by its own CMakeLists.txt."""
    folder = tmp_path_factory.mktemp("example")
    commands = (
        [find_cmake(), "-S", EXAMPLE, "-B", folder, "-G", "Ninja",
         f"-DCMAKE_MAKE_PROGRAM={find_ninja()}", f"-DPython3_EXECUTABLE={sys.executable}"],
        [find_cmake(), "--build", folder],
    )  # fmt: skip
    for command in commands:
        subprocess.run(
            [str(word) for word in command], check=True, capture_output=True,
            cwd=Path(__file__).parents[2],
        )  # fmt: skip
    return folder / "mine.so"


def bad_library(folder, name):
    """The example with one misdeed."""
    text = (EXAMPLE / "mine.cpp").read_text()
    end = "    }\n    return MOE_OK;\n}\n\nint32_t moe_plan_info"
    assert text.count(end) == 1
    deed = f"        if (t + 1 == num_tokens) {{ {MISDEEDS[name]} }}\n"
    source = folder / f"{name}.cpp"
    source.write_text(text.replace(end, deed + end))
    return compile_cpp(folder / f"{name}.so", source, flags=("-shared", "-fPIC"))


@pytest.mark.parametrize("name", CASES)
def test_example_is_right(library, name):
    """Every option of the layer, scales per channel, rows of zeros."""
    found = case(name)
    with kernels.variant(str(library)).prepare(found.w) as plan:
        assert errors(plan.forward(found.x), found.y).rel_rmse < 1e-5


def test_example_is_measured_like_ours(library, monkeypatch, tmp_path, capsys):
    """``bench`` verifies it, times it and gives it a speedup."""
    monkeypatch.setenv("MOE_PROF_SESSIONS", str(tmp_path))
    argv = ["bench", SHAPE, "--variant", str(library), "--repeat", "2", "--format", "json"]
    assert cli.main(argv) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    found = {r["metric"]: r["value"] for r in rows if r["variant"] == str(library)}
    assert found["rel_rmse"] < 1e-5
    assert found["time"] > 0


@pytest.mark.parametrize(("name", "where"), [("near", "after y"), ("before", "before y")])
def test_writes_beside_the_output_are_found(tmp_path, name, where):
    """The bytes around it are looked at after a forward."""
    w, x = layer()
    with (
        kernels.variant(str(bad_library(tmp_path, name))).prepare(w) as plan,
        pytest.raises(WorkloadError, match=f"wrote out of bounds: 4 bytes {where}"),
    ):
        plan.forward(x)


def test_misdeeds_cost_their_own_figures_only(library, monkeypatch, tmp_path, capsys):
    """Crashes, writes to inputs and weights, wrong results: exit 6, and the others are measured."""
    monkeypatch.setenv("MOE_PROF_SESSIONS", str(tmp_path / "sessions"))
    bad = {name: str(bad_library(tmp_path, name)) for name in MISDEEDS}
    names = ",".join([str(library), *bad.values()])
    code = cli.main(["bench", SHAPE, "--variant", names, "--repeat", "1", "--format", "json"])
    assert code == 6
    out, err = capsys.readouterr()
    rows = [r for r in json.loads(out)["rows"] if r["repeat"] is None]
    times = {r["variant"]: r["value"] for r in rows if r["metric"] == "time"}
    speedups = {r["variant"]: r["value"] for r in rows if r["metric"] == "speedup"}
    assert times[str(library)] > 0
    kept = [name for name, path in bad.items() if times[path] or speedups[path]]
    assert not kept
    for name in ("far", "input", "weights", "crash"):
        (line,) = [line for line in err.splitlines() if f"{bad[name]}: its process" in line]
        assert "killed by SIGSEGV" in line
        assert "between pages that may not be touched" in line
    (line,) = [line for line in err.splitlines() if f"{bad['abort']}: its process" in line]
    assert "killed by SIGABRT" in line
    assert "between pages" not in line
    assert f"{bad['near']}: it wrote out of bounds" in err
    assert f"{bad['near']}: {bad['near']}" not in err


@pytest.fixture(scope="module")
def plain_library(tmp_path_factory):
    """The example for any machine, so that an instrumenting tool knows its instructions."""
    folder = tmp_path_factory.mktemp("plain")
    return compile_cpp(
        folder / "mine.so", EXAMPLE / "mine.cpp", flags=("-shared", "-fPIC", "-fvisibility=hidden")
    )


def test_example_is_counted_like_ours(plain_library, monkeypatch, tmp_path, capsys):
    """``counters`` simulates it in the native driver; a wrong one is told and costs no other."""
    if not callgrind.availability().usable:
        pytest.skip(callgrind.availability().reason)
    monkeypatch.setattr(counted, "find_counters", lambda _: counted.NO_COUNTERS)
    monkeypatch.setenv("MOE_PROF_SESSIONS", str(tmp_path / "sessions"))
    wrong = bad_library(tmp_path, "wrong")
    argv = ["counters", SHAPE, "--variant", f"{plain_library},{wrong}", "--format", "json"]
    assert cli.main(argv) == 6
    out, err = capsys.readouterr()
    found = {(r["variant"], r["metric"]): r for r in json.loads(out)["rows"]}
    row = found[str(plain_library), "instructions"]
    assert (row["provenance"], row["value"] > 10_000) == ("simulated", True)
    assert found[str(wrong), "instructions"]["value"] is None
    assert f"variant {wrong}: wrong result" in err


def test_hot_functions_of_the_example_are_its_own(plain_library, monkeypatch, tmp_path, capsys):
    """By their symbols in the library, not those of the driver that runs it."""
    if not callgrind.availability().usable:
        pytest.skip(callgrind.availability().reason)
    monkeypatch.setenv("MOE_PROF_SESSIONS", str(tmp_path / "sessions"))
    argv = ["hotspots", SHAPE, "--variant", str(plain_library), "--with", "callgrind"]
    assert cli.main(argv) == 0
    out = capsys.readouterr().out
    assert "add_expert" in out
    (raw,) = (tmp_path / "sessions").glob("*/raw/callgrind/*")
    assert raw.name.endswith("mine.so")


def test_driver_runs_a_library_and_checks_it(plain_library, tmp_path):
    """``moe_bench --library``: its variants by name, its result against the baseline's."""
    front = str(kernel_build.build().front)
    sizes = SHAPE.split(",")

    def run(*words):
        done = subprocess.run([front, *words], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout, done.stderr

    assert run("--list", "--library", str(plain_library)) == (0, "mine\n", "")
    code, out, _ = run(*sizes, "1", "--library", str(plain_library), "--json")
    assert (code, json.loads(out)["variant"], json.loads(out)["correct"]) == (0, "mine", True)
    assert run(*sizes, "1", "--library", str(bad_library(tmp_path, "wrong")))[0] == 6
    missing = str(tmp_path / "none.so")
    assert run(*sizes, "--library", missing) == (
        2, "", f"moe_bench: --library: {missing}: cannot open shared object file: No such file or "
        "directory\n",
    )  # fmt: skip


def test_driver_refuses_other_libraries(tmp_path):
    """One without the plan API, and one of another version of it."""
    front, sizes = str(kernel_build.build().front), SHAPE.split(",")
    text = (EXAMPLE / "mine.cpp").read_text()
    assert text.count("return MOE_ABI_VERSION;") == 1
    old = tmp_path / "old.cpp"
    old.write_text(text.replace("return MOE_ABI_VERSION;", "return 1;"))
    empty = tmp_path / "empty.cpp"
    empty.write_text("")
    for source, words in ((old, "has plan API version 1, this driver"), (empty, "lacks functions")):
        library = compile_cpp(source.with_suffix(".so"), source, flags=("-shared", "-fPIC"))
        done = subprocess.run(
            [front, *sizes, "--library", str(library)], capture_output=True, text=True, check=False
        )
        assert (done.returncode, words in done.stderr) == (2, True)


def test_header_can_be_found():
    """The module prints the folder of the header, and nothing else is asked of it."""
    command = [sys.executable, "-m", "moe_prof.kernels"]
    done = subprocess.run([*command, "include"], capture_output=True, text=True, check=True)
    assert Path(done.stdout.strip(), "moe_prof.h").is_file()
    assert Path(done.stdout.strip()) == SOURCE_DIR / "include"
    wrong = subprocess.run([*command, "where"], capture_output=True, text=True, check=False)
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert wrong.stderr.startswith("usage:")
