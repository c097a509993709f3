"""The native driver: command line, output, inputs, region of interest."""

import json
import os
import shutil
import subprocess
import sys
import threading

import pytest

from moe_prof import kernels
from moe_prof.errors import UnavailableError, WorkloadError
from moe_prof.kernels import build as kernel_build
from moe_prof.kernels.build import SOURCE_DIR
from moe_prof.kernels.compiler import find_compiler
from moe_prof.kernels.driver import driver_argv, find_driver, layer_argv, parse_result
from moe_prof.presets import LayerOptions
from moe_prof.scenario import Scenario

SHAPE = ("9", "33", "31", "5", "2")
HERE = os.path.dirname(__file__)


def run(*args, program=None, env=None):
    """Run moe_bench and return the finished process."""
    program = program or kernel_build.build().front
    return subprocess.run(
        [str(program), *args], capture_output=True, text=True, timeout=60, check=False,
        env=os.environ | (env or {}),
    )  # fmt: skip


def compile_cpp(output, *sources, flags=()):
    """Compile sources of the kernels and of the tests into one file."""
    command = [
        *find_compiler().argv, "-std=c++17", "-O1", "-ffp-contract=off", "-pthread",
        f"-I{SOURCE_DIR / 'cpp'}", f"-I{SOURCE_DIR / 'include'}", '-DMOE_ISA_NAME="portable"',
        '-DMOE_DRIVER_ISA="portable"', *flags, *map(str, sources), "-o", str(output),
    ]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True)
    return output


@pytest.fixture(scope="module")
def wrong_driver(tmp_path_factory):
    """A driver that also holds a variant with wrong results."""
    cpp = SOURCE_DIR / "cpp"
    sources = [*sorted(cpp.glob("*.cpp")), cpp / "variants" / "scalar.cpp"]
    sources += [path for path in sorted((cpp / "bench").glob("*.cpp")) if path.stem != "front"]
    output = tmp_path_factory.mktemp("wrong") / "moe_bench-wrong"
    return compile_cpp(output, *sources, os.path.join(HERE, "wrong_variant.cpp"))


def test_output_has_its_four_answers():
    """Problem size, both times, verdict and speedup are printed as expected by scripts."""
    done = run(*SHAPE, "3", "--variant", "openmp", "--threads", "2")
    lines = done.stdout.splitlines()
    assert done.returncode == 0
    assert lines[0] == (
        "problem size: num_tokens=9 d_model=33 d_ff=31 num_experts=5 top_k=2 (3 iterations)"
    )
    assert [line.split(":")[0] for line in lines[1:]] == [
        "Baseline time", "Optimized time", "Result is correct! (rel RMSE", "Speedup",
    ]  # fmt: skip
    assert lines[3] == "Result is correct! (rel RMSE: 0, worst token: 0 at -1)"


def test_benchmark_skips_the_baseline():
    """With --benchmark only the optimized loop runs."""
    done = run(*SHAPE, "3", "--benchmark")
    assert [line.split(":")[0] for line in done.stdout.splitlines()] == [
        "problem size", "Optimized time",
    ]  # fmt: skip


def test_default_iterations_are_1000():
    """Without a sixth number the loop runs 1000 times."""
    done = run("1", "8", "8", "2", "1", "--benchmark")
    assert "(1000 iterations)" in done.stdout


def test_wrong_result_is_told_and_has_no_speedup(wrong_driver):
    """A wrong kernel names its worst token, exits 6 and gets no speedup."""
    done = run(*SHAPE, "2", "--variant", "wrong", program=wrong_driver)
    assert done.returncode == 6
    assert "Result is WRONG!" in done.stdout
    assert "worst token: 1 at 8)" in done.stdout
    assert "Speedup" not in done.stdout


def test_json_names_what_ran():
    """The JSON line carries variant, path, threads, iterations, times and a checksum."""
    done = run(*SHAPE, "4", "--json", "--benchmark", "--variant", "matricized", "--isa", "portable",
               "--threads", "2")  # fmt: skip
    result = parse_result(done.stdout)
    expected = ("matricized", "portable", 2, 4)
    assert (result.variant, result.isa, result.threads, result.iterations) == expected
    assert result.total_s > 0.0


def test_checksum_is_equal_for_equal_bits():
    """Variants with equal bits have equal checksums; another seed has another one."""
    sums = [
        parse_result(run(*SHAPE, "1", "--json", "--variant", name, "--seed", seed).stdout).checksum
        for name, seed in (("scalar", "0"), ("matricized", "0"), ("scalar", "1"))
    ]
    assert sums[0] == sums[1] != sums[2]


def test_min_time_repeats_the_loop():
    """--min-time repeats the iterations until the time has passed."""
    done = run(*SHAPE, "2", "--json", "--benchmark", "--min-time", "0.05")
    result = parse_result(done.stdout)
    assert result.total_s >= 0.05
    assert result.iterations % 2 == 0
    assert result.iterations > 2


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((), "five sizes are needed"),
        (("1", "2", "3"), "five sizes are needed"),
        (("1", "2", "3", "4", "5"), "K = 5 is larger than E = 4"),
        (("0", "2", "3", "4", "1"), "N = 0 is not in 1..16777216"),
        (("1", "-2", "3", "4", "1"), "D = -2 is not in 1..132104"),
        (("1", "2", "132105", "4", "1"), "H = 132105 is not in 1..132104"),
        (("1", "2", "3", "4", "1", "0"), "iterations = 0 is not in 1.."),
        (("1", "2", "3", "4", "1", "5", "6"), "too many numbers at '6'"),
        (("1", "2", "3x", "4", "1"), "'3x' is not a whole number"),
        ((*SHAPE, "--fast"), "unknown option --fast"),
        ((*SHAPE, "--seed"), "--seed needs a value"),
        ((*SHAPE, "--seed", "-1"), "--seed -1: not a valid value"),
        ((*SHAPE, "--score", "relu"), "--score relu: not a valid value"),
        ((*SHAPE, "--groups", "5"), "--groups 5: not a valid value"),
        ((*SHAPE, "--groups", "2,3"), "--groups 2,3: not a valid value"),
        ((*SHAPE, "--scaling-factor", "0"), "--scaling-factor 0: not a valid value"),
        ((*SHAPE, "--distinct-experts", "0"), "--distinct-experts 0: not a valid value"),
        ((*SHAPE, "--threads", "0"), "--threads 0: not a valid value"),
        ((*SHAPE, "--min-time", "nan"), "--min-time nan: not a valid value"),
        ((*SHAPE, "--roi-fifo", "one"), "--roi-fifo one: not a valid value"),
        ((*SHAPE, "--variant", "fast"), "unknown variant 'fast'"),
        ((*SHAPE, "--isa", "mmx"), "unknown path 'mmx'; paths that run here:"),
        (("16777216", "132104", "132104", "1000", "1"), "these sizes need"),
    ],
    ids=str,
)
def test_bad_arguments_are_one_line_and_exit_2(args, message):
    """Every wrong command line is answered by one line on stderr and exit code 2."""
    done = run(*args)
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1
    assert f"moe_bench: {message}" in done.stderr


def test_environment_chooses_the_path():
    """MOE_PROF_ISA decides which driver runs."""
    done = run(*SHAPE, "1", "--json", "--benchmark", env={"MOE_PROF_ISA": "portable"})
    assert parse_result(done.stdout).isa == "portable"


def test_a_driver_refuses_another_path():
    """A path's own driver does not pretend to be another's."""
    done = run(*SHAPE, "--isa", "avx2", program=kernel_build.build().driver("portable"))
    assert (done.returncode, done.stderr) == (
        2, "moe_bench: this driver is for path portable, not avx2\n",
    )  # fmt: skip


def test_list_names_the_variants_of_a_path():
    """--list prints the variants in stage order, the baseline among them."""
    done = run("--list", program=kernel_build.build().driver("portable"))
    assert set(done.stdout.split()) == {"autovec", "openmp", "matricized", "scalar", "portable"}


@pytest.mark.parametrize("shape", [(9, 33, 31, 5, 2), (3, 64, 48, 16, 4), (1, 1, 1, 1, 1)])
@pytest.mark.parametrize("seed", [0, 12345, 2**64 - 1])
def test_inputs_have_the_bits_of_python(tmp_path, shape, seed):
    """The driver's weights and tokens equal those of kernels.random_weights, bit for bit."""
    scenario = Scenario(*shape)
    w, x = kernels.random_weights(scenario, seed), kernels.random_tokens(scenario, seed)
    dump = tmp_path / "inputs"
    run(*map(str, shape), "--seed", str(seed), "--dump-inputs", str(dump))
    arrays = (
        w.router, w.bias, w.gate, w.up, w.down, w.gate_scale, w.up_scale, w.down_scale, x,
    )  # fmt: skip
    assert dump.read_bytes() == b"".join(array.tobytes() for array in arrays)


def test_checksum_is_the_digest_of_the_python_plans_bits():
    """The driver's output has the bits of the same variant behind Python."""
    scenario = Scenario(9, 33, 31, 5, 2)
    w, x = kernels.random_weights(scenario, 7), kernels.random_tokens(scenario, 7)
    with kernels.variant("scalar").prepare(w) as plan:
        y = plan.forward(x)
    done = run(*SHAPE, "1", "--json", "--benchmark", "--variant", "scalar", "--seed", "7")
    assert parse_result(done.stdout).checksum == digest_of(y)


def digest_of(y):
    """The checksum of an output, as the driver prints it: FNV-1a over its bytes."""
    digest = 0xCBF29CE484222325
    for byte in y.tobytes():
        digest = ((digest ^ byte) * 0x100000001B3) % 2**64
    return f"{digest:016x}"


OPTIONS = (
    LayerOptions("softmax", has_shared=False, has_residual=False),
    LayerOptions(n_group=4, topk_group=2, routed_scaling_factor=2.5, has_residual=False),
    LayerOptions("softmax", has_shared=False, normalize_gates=False),
)


@pytest.mark.parametrize("options", OPTIONS, ids=("softmax", "groups", "raw"))
@pytest.mark.parametrize("distinct", [0, 4])
def test_layer_options_reach_the_driver(options, distinct):
    """The driver's layer is the one that Python makes, its shared memory included."""
    scenario = Scenario(7, 64, 64, 16, 3, options=options, distinct_experts=distinct)
    with kernels.variant("scalar").prepare(kernels.random_weights(scenario)) as plan:
        y = plan.forward(kernels.random_tokens(scenario))
    sizes = map(str, scenario.shape)
    done = run(*sizes, "1", "--json", "--benchmark", "--variant", "scalar", *layer_argv(scenario))
    assert parse_result(done.stdout).checksum == digest_of(y)


def test_unwritable_dump_is_one_line(tmp_path):
    """A dump that cannot be written exits 1 and names the file."""
    done = run(*SHAPE, "--dump-inputs", str(tmp_path / "no" / "file"))
    assert done.returncode == 1
    assert done.stderr.startswith(f"moe_bench: cannot write {tmp_path / 'no' / 'file'}: ")


def answer_commands(control, acknowledge, heard, answer):
    """Play perf's part: read commands, answer each by ``answer``."""
    with open(control, "rb", buffering=0) as commands, open(acknowledge, "wb", buffering=0) as ack:
        for line in iter(commands.readline, b""):
            heard.append(line)
            ack.write(answer)


@pytest.mark.parametrize("answer", [b"ack\n", b"ack\n\0"], ids=["plain", "trailing NUL"])
def test_region_is_enabled_and_disabled_over_the_fifos(tmp_path, answer):
    """The driver sends enable and disable, each once, and waits for the acknowledgements."""
    control, acknowledge = tmp_path / "ctl", tmp_path / "ack"
    os.mkfifo(control)
    os.mkfifo(acknowledge)
    heard = []
    peer = threading.Thread(target=answer_commands, args=(control, acknowledge, heard, answer))
    peer.start()
    done = run(*SHAPE, "2", "--benchmark", "--roi-fifo", f"{control},{acknowledge}")
    peer.join(timeout=30)
    assert (done.returncode, heard) == (0, [b"enable\n", b"disable\n"])


def test_missing_fifo_is_one_line(tmp_path):
    """A fifo that does not exist exits 1 and is named."""
    done = run(*SHAPE, "2", "--benchmark", "--roi-fifo", f"{tmp_path / 'ctl'},{tmp_path / 'ack'}")
    assert done.returncode == 1
    assert f"--roi-fifo: cannot open {tmp_path / 'ack'}" in done.stderr


@pytest.mark.parametrize("place", ["ctl", "ack"])
def test_only_fifos_are_written(tmp_path, place):
    """A file that is named in a fifo's place stays as it was, and the mistake is told."""
    for name in ("ctl", "ack"):
        if name == place:
            (tmp_path / name).write_text("precious")
        else:
            os.mkfifo(tmp_path / name)
    done = run(*SHAPE, "2", "--benchmark", "--roi-fifo", f"{tmp_path / 'ctl'},{tmp_path / 'ack'}")
    assert done.returncode == 1
    assert f"moe_bench: --roi-fifo: {tmp_path / place} is not a fifo" in done.stderr
    assert (tmp_path / place).read_text() == "precious"


@pytest.mark.slow
def test_silent_peer_times_out(tmp_path):
    """A peer that never acknowledges ends in an error, not in a hang."""
    control, acknowledge = tmp_path / "ctl", tmp_path / "ack"
    os.mkfifo(control)
    os.mkfifo(acknowledge)
    reader = os.open(control, os.O_RDWR)
    try:
        done = run(*SHAPE, "2", "--benchmark", "--roi-fifo", f"{control},{acknowledge}")
    finally:
        os.close(reader)
    assert done.returncode == 1
    assert "no acknowledgement of 'enable'" in done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="LD_PRELOAD is used")
@pytest.mark.parametrize("name", ["scalar", "autovec", "openmp", "matricized"])
def test_forward_allocates_nothing(tmp_path, name):
    """Ten more forwards make not one more heap allocation."""
    preload = compile_cpp(
        tmp_path / "count.so", os.path.join(HERE, "malloc_counter.c"),
        flags=("-shared", "-fPIC", "-x", "c", "-std=gnu11"),
    )  # fmt: skip
    counts = [
        run(
            *SHAPE, iterations, "--benchmark", "--variant", name, "--threads", "2",
            program=find_driver(name).program, env={"LD_PRELOAD": str(preload)},
        ).stderr
        for iterations in ("1", "11")
    ]  # fmt: skip
    assert counts[0].startswith("allocations: ")
    assert counts[0] == counts[1]


def test_driver_argv_is_the_command_line():
    """The argument list for profilers has every choice spelled out."""
    driver = find_driver("openmp", isa="portable")
    argv = driver_argv(
        driver, Scenario(9, 33, 31, 5, 2), iterations=3, threads=2, seed=4, min_time_s=0.25
    )
    assert argv[1:] == [
        "9", "33", "31", "5", "2", "3", "--benchmark", "--json", "--variant", "openmp",
        "--threads", "2", "--seed", "4", "--warmup", "1", "--min-time", "0.25",
    ]  # fmt: skip
    assert parse_result(run(*argv[1:], program=argv[0]).stdout).isa == "portable"


def test_numba_variant_has_no_driver():
    """A variant that lives in Python cannot be put into the native driver, and says so."""
    with pytest.raises(UnavailableError, match=r"not part of the native driver.*'counters -- C"):
        find_driver("numba-parallel")


@pytest.mark.parametrize("text", ["", "Optimized time: 1 s\n", '{"variant": "x"}', '{"variant"'])
def test_output_without_a_result_is_an_error(text):
    """Output that lacks the JSON line, or fields of it, is a workload error."""
    with pytest.raises(WorkloadError, match="moe_bench printed"):
        parse_result(text)


def test_json_of_a_verified_run_is_complete():
    """Without --benchmark the JSON line also carries the verdict against the baseline."""
    answer = json.loads(run(*SHAPE, "1", "--json", "--variant", "openmp").stdout)
    assert (answer["correct"], answer["rel_rmse"], answer["worst_token"]) == (True, 0, -1)


@pytest.mark.parametrize(("variant", "path"), [("dispatched", "one_token"), ("scalar", "")])
def test_json_names_the_way_of_the_dispatched_variant(variant, path):
    """One small token on one thread needs no team; variants with one way name none."""
    if variant not in kernels.variants():
        pytest.skip(f"{variant} does not run on this machine")
    done = run("1", "33", "31", "5", "2", "1", "--json", "--benchmark", "--variant", variant,
               "--threads", "1")  # fmt: skip
    assert json.loads(done.stdout)["path"] == path


@pytest.mark.slow
def test_gprof_driver_writes_a_profile(tmp_path):
    """The driver of the gprof build leaves gmon.out where it runs."""
    driver = find_driver("scalar", build="gprof").program
    subprocess.run(
        [str(driver), *SHAPE, "2", "--benchmark", "--variant", "scalar"], cwd=tmp_path, check=True,
        capture_output=True,
    )  # fmt: skip
    assert (tmp_path / "gmon.out").stat().st_size > 0


def instructions_in_region(threads, outputs):
    """What callgrind collects of the timed loop alone."""
    driver = find_driver("openmp", isa="portable").program
    done = run(
        "--tool=callgrind", "--instr-atstart=no", "--collect-atstart=no",
        f"--callgrind-out-file={outputs / 'out'}", str(driver), "32", "96", "100", "9", "3", "2",
        "--benchmark", "--variant", "openmp", "--threads", str(threads), program="valgrind",
    )  # fmt: skip
    return int(done.stderr.rpartition("Collected :")[2].split()[0])


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind is not installed")
@pytest.mark.skipif(
    not os.path.exists("/usr/include/valgrind/callgrind.h"), reason="valgrind's header is missing"
)
def test_callgrind_counts_the_loop_of_all_threads(tmp_path):
    """The instructions of the region do not depend on how many threads share them."""
    alone = instructions_in_region(1, tmp_path)
    shared = instructions_in_region(2, tmp_path)
    assert shared == pytest.approx(alone, rel=0.3)
