"""The emulated CPU itself: it computes, and it reports what would have ended a process."""

import ctypes
import subprocess

import numpy as np
import pytest

from moe_prof.kernels.compiler import find_compiler
from tests.emulation import bochs_cpu

SOURCE = r"""
#include <immintrin.h>
#include <stdint.h>
extern "C" {
int64_t add_nine(int64_t a, int64_t b, int64_t c, int64_t d, int64_t e, int64_t f, int64_t g,
                 int32_t h, const int32_t *i) { return a + b + c + d + e + f + g + h + *i; }
float scaled(float factor, const float *v, float more) { return factor * v[1] + more; }
__attribute__((target("avx512f,avx512vnni"))) int products(const void *a, const void *b) {
    const __m512i sum = _mm512_dpbusd_epi32(_mm512_setzero_si512(), _mm512_loadu_si512(a),
                                            _mm512_loadu_si512(b));
    return _mm512_reduce_add_epi32(sum);
}
void trap(void) { __builtin_trap(); }
int read_at(const int *address) { return *address; }
}
"""


@pytest.fixture(scope="module")
def emulated(emulated_cpu, tmp_path_factory):
    """A function: name and type of the result to a callable on the emulated CPU."""
    folder = tmp_path_factory.mktemp("emulated")
    source, library = folder / "code.cpp", folder / "libcode.so"
    source.write_text(SOURCE)
    argv = [*find_compiler().argv, "-O1", "-shared", "-fPIC", "-o", str(library), str(source)]
    subprocess.run(argv, check=True, capture_output=True)
    native = ctypes.CDLL(str(library))

    def function(name, result_type=ctypes.c_int32):
        found = native[name]
        found.restype = result_type
        return emulated_cpu.function(found)

    return function


def test_arguments_in_registers_and_on_the_stack(emulated):
    """Nine integers of which three lie on the stack, one of them an address of the host."""
    last = ctypes.c_int32(-9000)
    numbers = [ctypes.c_int64(n) for n in (1, 20, 300, -4, 50, 600, 7)]
    address = ctypes.c_void_p(ctypes.addressof(last))
    assert emulated("add_nine")(*numbers, ctypes.c_int32(8), address) == 982 - 9000


def test_floats(emulated):
    """Floats as arguments between others, and as the result."""
    v = np.array([1, 2.5], dtype=np.float32)
    arguments = (ctypes.c_float(3), ctypes.c_void_p(v.ctypes.data), ctypes.c_float(0.25))
    assert emulated("scaled", ctypes.c_float)(*arguments) == 7.75


def test_vnni_runs_whatever_this_cpu_has(emulated):
    """The instruction that the package's own CPU model lacks."""
    a = np.arange(192, 256, dtype=np.uint8)
    b = np.arange(-64, 0, dtype=np.int8)
    address = [ctypes.c_void_p(v.ctypes.data) for v in (a, b)]
    assert emulated("products")(*address) == int(a.astype(np.int64) @ b)


def test_trap_is_reported(emulated):
    """A broken contract of a microkernel is an error here, not the end of the tests."""
    with pytest.raises(bochs_cpu.EmulationError, match="exception"):
        emulated("trap")()


@pytest.mark.parametrize("address", [0x10, 0x123456789000, 1 << 60])
def test_access_outside_of_the_process_is_reported(emulated, address):
    """An address at which this process has no memory, near, far and malformed."""
    with pytest.raises(bochs_cpu.EmulationError):
        emulated("read_at")(ctypes.c_void_p(address))
