"""A kernel of the user's own behind the plan API."""

import numpy as np
import pytest

from moe_prof import kernels
from moe_prof.errors import InputError, UsageError, WorkloadError
from moe_prof.kernels.build import SOURCE_DIR
from tests.kernels.layers import layer
from tests.kernels.test_moe_bench import compile_cpp


def core_without_plan():
    """The core's sources but the plan API, of which a test makes its own."""
    return [path for path in sorted((SOURCE_DIR / "cpp").glob("*.cpp")) if path.name != "plan.cpp"]


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """A library with the plan API and one variant, ``scalar``."""
    cpp = SOURCE_DIR / "cpp"
    return compile_cpp(
        tmp_path_factory.mktemp("user") / "mine.so",
        *sorted(cpp.glob("*.cpp")), cpp / "variants" / "scalar.cpp",
        flags=("-shared", "-fPIC"),
    )  # fmt: skip


def output(name, w, x):
    """One forward of a variant."""
    with kernels.variant(name).prepare(w) as plan:
        return plan.forward(x)


def test_first_variant_of_a_library_runs(library):
    """A library given by path runs its first variant."""
    w, x = layer()
    assert output(str(library), w, x).tobytes() == output("scalar", w, x).tobytes()


def test_variant_of_a_library_can_be_named(library):
    """``path.so:name`` chooses a variant inside."""
    w, _ = layer()
    with kernels.variant(f"{library}:scalar").prepare(w) as plan:
        assert plan.info.variant == "scalar"


def test_unknown_variant_of_a_library_is_refused(library):
    """A name that the library lacks is an error."""
    w, _ = layer()
    with pytest.raises(UsageError, match="prepare fast: no variant of that name"):
        kernels.variant(f"{library}:fast").prepare(w)


def test_forced_path_is_refused_for_a_library(library):
    """--isa chooses among built-in paths only."""
    w, _ = layer()
    with pytest.raises(UsageError, match="--isa chooses among built-in paths"):
        kernels.variant(str(library)).prepare(w, isa="avx2")


def test_missing_library_is_named(tmp_path):
    """A path that does not exist is one clear error."""
    w, _ = layer()
    with pytest.raises(InputError, match=r"none\.so cannot be loaded"):
        kernels.variant(str(tmp_path / "none.so")).prepare(w)


def test_file_that_is_no_library_is_refused(tmp_path):
    """A text file is not taken for a kernel."""
    path = tmp_path / "text.so"
    path.write_text("not a library, just text of some length")
    w, _ = layer()
    with pytest.raises(InputError, match="is not an ELF file"):
        kernels.variant(str(path)).prepare(w)


def test_library_without_the_api_is_refused(tmp_path):
    """A shared library that lacks the plan API names the missing function and the header."""
    source = tmp_path / "empty.cpp"
    source.write_text('extern "C" int answer() { return 42; }\n')
    path = compile_cpp(tmp_path / "empty.so", source, flags=("-shared", "-fPIC"))
    w, _ = layer()
    with pytest.raises(InputError, match=r"does not export moe_abi_version.*moe_prof\.h"):
        kernels.variant(str(path)).prepare(w)


def test_library_of_another_api_version_is_refused(tmp_path, library):
    """A version mismatch asks for a rebuild."""
    source = tmp_path / "old.cpp"
    text = (SOURCE_DIR / "cpp" / "plan.cpp").read_text()
    source.write_text(text.replace("return MOE_ABI_VERSION;", "return 999;"))
    cpp = SOURCE_DIR / "cpp"
    path = compile_cpp(
        tmp_path / "old.so", source, *core_without_plan(), cpp / "variants" / "scalar.cpp",
        flags=("-shared", "-fPIC"),
    )  # fmt: skip
    w, _ = layer()
    with pytest.raises(InputError, match="plan API version 999"):
        kernels.variant(str(path)).prepare(w)


def test_library_is_timed_by_the_native_loop(library):
    """A user's kernel is timed like a built-in one."""
    w, x = layer()
    with kernels.variant(str(library)).prepare(w) as plan:
        times_s = plan.time_forward(x, 3, batches=2)
    assert np.all(times_s > 0.0)


def test_words_of_a_library_need_not_be_utf8(tmp_path):
    """Its texts are shown as far as they can be, in one line."""
    cpp = SOURCE_DIR / "cpp"
    source = tmp_path / "latin.cpp"
    text = (cpp / "plan.cpp").read_text()
    source.write_text(
        text.replace('"no variant of that name in this library"', '"nicht\\xe4\\nda"')
    )
    path = compile_cpp(
        tmp_path / "latin.so", source, *core_without_plan(), cpp / "variants" / "scalar.cpp",
        flags=("-shared", "-fPIC"),
    )  # fmt: skip
    w, _ = layer()
    with pytest.raises(UsageError, match="prepare none: nicht\ufffd da"):
        kernels.variant(f"{path}:none").prepare(w)


def test_a_library_must_tell_its_threads(tmp_path):
    """What it says of itself is checked before arrays of that size are made."""
    cpp = SOURCE_DIR / "cpp"
    source = tmp_path / "minus.cpp"
    text = (cpp / "plan.cpp").read_text()
    source.write_text(text.replace("info->threads = plan->plan->threads;", "info->threads = -1;"))
    path = compile_cpp(
        tmp_path / "minus.so", source, *core_without_plan(), cpp / "variants" / "scalar.cpp",
        flags=("-shared", "-fPIC"),
    )  # fmt: skip
    w, _ = layer()
    with pytest.raises(WorkloadError, match="says that it runs on -1 threads"):
        kernels.variant(str(path)).prepare(w)
