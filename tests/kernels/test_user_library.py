"""A kernel of the user's own behind the plan API."""

import numpy as np
import pytest

from moe_prof import kernels
from moe_prof.errors import InputError, UsageError, WorkloadError
from moe_prof.kernels.build import SOURCE_DIR
from tests.kernels.layers import layer
from tests.kernels.test_moe_bench import compile_cpp


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


def test_library_of_another_api_version_is_refused(tmp_path):
    """A version mismatch asks for a rebuild."""
    path = changed_library(tmp_path, "return MOE_ABI_VERSION;", "return 999;")
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
    text = '"no variant of that name in this library"'
    path = changed_library(tmp_path, text, '"nicht\\xe4\\nda"')
    w, _ = layer()
    with pytest.raises(UsageError, match="prepare none: nicht\ufffd da"):
        kernels.variant(f"{path}:none").prepare(w)


def test_a_library_must_tell_its_threads(tmp_path):
    """What it says of itself is checked before arrays of that size are made."""
    text = "info->threads = plan->plan->threads;"
    path = changed_library(tmp_path, text, "info->threads = -1;")
    w, _ = layer()
    with pytest.raises(WorkloadError, match="says that it runs on -1 threads"):
        kernels.variant(str(path)).prepare(w)


def changed_library(folder, old, new):
    """The library with one text of plan.cpp replaced."""
    cpp = SOURCE_DIR / "cpp"
    text = (cpp / "plan.cpp").read_text()
    assert text.count(old) == 1
    (folder / "changed.cpp").write_text(text.replace(old, new))
    others = [path for path in sorted(cpp.glob("*.cpp")) if path.name != "plan.cpp"]
    return compile_cpp(
        folder / "changed.so", folder / "changed.cpp", *others, cpp / "variants" / "scalar.cpp",
        flags=("-shared", "-fPIC"),
    )  # fmt: skip
