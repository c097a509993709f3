"""The AMX path's tile kernels: their C++ with a model of the tiles, and their machine code.

The model (tests/emulation/amx_shim.h) checks what the instructions check and runs on any CPU, so
that layouts, strides, numbers of rows and sums are tested everywhere. What a compiler may spoil is
looked for in the disassembly. test_packed_microkernels.py runs the same kernels natively where a
CPU has tiles.
"""

import ctypes
import os
import re
import shutil
import signal
import subprocess
import sys

import numpy as np
import pytest

from benchmarks.compiled_loops import functions_of, loop_with_most, occurrences
from moe_prof.kernels.compiler import ask_version, find_compiler
from tests.kernels.isa_kernels import PACKED, PATHS

EMULATION = os.path.join(os.path.dirname(__file__), "..", "emulation")
AMX = next(path for path in PATHS if path.isa == "amx_int8")
FLAGS = ("-std=c++17", "-ffp-contract=off", "-fPIC", "-shared", "-Wall", "-Wextra", "-Werror")
SHIM = ("-O2", '-DMOE_AMX_SHIM="amx_shim.h"', f"-I{EMULATION}", "-DMOE_CHECK_MICROKERNELS")
KERNELS = [
    file for file in sorted((PACKED / "amx_int8").glob("*.cpp"))
    if "table" not in file.name and "f32" not in file.name
]  # fmt: skip
ZIG_FLAGS = ("-mcpu=x86_64_v4+avx512vnni+amx_tile+amx_int8",)
NR, LEAST, MOST, K_BLOCK, LINE = 32, 3, 32, 64, 64


def compile_library(folder, flags, compiler=None):
    """The tile kernels alone, as a shared library."""
    out = folder / "libtiles.so"
    argv = [*(compiler or find_compiler()).argv, *FLAGS, *flags, "-o", str(out), *map(str, KERNELS)]
    subprocess.run(argv, check=True, capture_output=True)
    return out


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """The kernels with the model instead of tiles, compiled for any CPU."""
    return compile_library(tmp_path_factory.mktemp("tiles"), SHIM)


@pytest.fixture(scope="module")
def tiles(library):
    """The kernels with the model."""
    return ctypes.CDLL(str(library))


def gemm_name(m):
    """The kernel of m rows."""
    return f"moe_qu8s8_gemm_{m if m <= 16 else 32}x32c64__amx_int8"


def pointer(array):
    """The address of an array's first element."""
    return ctypes.c_void_p(array.ctypes.data)


def aligned(byte_count):
    """Bytes that start on a line, filled with a pattern that no kernel may rely on."""
    raw = np.full(byte_count + LINE, 0xA5, dtype=np.uint8)
    start = -raw.ctypes.data % LINE
    return raw[start : start + byte_count]


def blocks(k):
    """Blocks of 64 k."""
    return -(-k // K_BLOCK)


def panel_bytes(k):
    """Of 32 channels."""
    return 4 * NR + blocks(k) * K_BLOCK * NR


def packed(tiles, weights):
    """weights: (channels, K) int8; the bytes of its panels."""
    k = weights.shape[1]
    count = -(-len(weights) // NR)
    panels = aligned(count * panel_bytes(k))
    addresses = [row.ctypes.data for row in weights] + [None] * (count * NR - len(weights))
    for p in range(count):
        channels = (ctypes.c_void_p * NR)(*addresses[p * NR : (p + 1) * NR])
        panel = panels[p * panel_bytes(k) :]
        tiles.moe_qs8_pack_32c64__amx_int8(ctypes.c_size_t(k), channels, pointer(panel))
    return panels


def product(tiles, weights, q, stride_lines=None):
    """int32 products of rows (m, K) of -127..127 with weights (channels, K)."""
    m, k = q.shape
    stride = LINE * (stride_lines or blocks(k) | 1)
    rows = aligned(m * stride).reshape(m, stride)
    rows[:, : blocks(k) * K_BLOCK] = 128
    rows[:, :k] = (q.astype(np.int16) + 128).astype(np.uint8)
    addresses = (ctypes.c_void_p * m)(*[row.ctypes.data for row in rows])
    panels = packed(tiles, weights)
    count = panels.size // panel_bytes(k)
    acc = np.full((m + 1, count * NR + 3), 77, dtype=np.int32)
    tiles.moe_configure_tiles__amx_int8(ctypes.c_size_t(m))
    getattr(tiles, gemm_name(m))(
        ctypes.c_size_t(k), ctypes.c_size_t(count), ctypes.c_size_t(panel_bytes(k)), addresses,
        pointer(panels), pointer(acc), ctypes.c_size_t(count * NR + 3),
    )  # fmt: skip
    tiles.moe_release_tiles__amx_int8()
    assert (acc[m] == 77).all()
    assert (acc[:, count * NR :] == 77).all()
    return acc[:m, : len(weights)]


def quantize16(row, values):
    """A token's values to a row of high and low bytes, as the path's kernel lays it out."""
    q = np.zeros(blocks(values.size) * K_BLOCK, dtype=np.int64)
    q[: values.size] = values
    halves = np.stack([q >> 8, q & 255], axis=-1).astype(np.uint8)
    planes = halves.reshape(-1, K_BLOCK, 2).transpose(0, 2, 1)
    row.view(np.uint8)[: planes.size] = planes.ravel()


def expected(weights, q):
    """The same in int64."""
    return q.astype(np.int64) @ weights.T.astype(np.int64)


@pytest.mark.parametrize("k", [1, 3, 63, 64, 65, 128, 129, 257])
def test_product_is_exact_for_every_number_of_rows(tiles, k):
    """Random weights of the whole int8 range against random rows, odd and even blocks of k.

    One panel, two together, and one that is left over.
    """
    rng = np.random.default_rng(k)
    for m in range(LEAST, MOST + 1):
        weights = rng.integers(-128, 128, ((1 + m % 3) * NR, k)).astype(np.int8)
        q = rng.integers(-127, 128, (m, k)).astype(np.int8)
        np.testing.assert_array_equal(product(tiles, weights, q), expected(weights, q))


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5])
def test_any_number_of_panels_is_exact(tiles, count):
    """Panels are multiplied two by two, by one call."""
    rng = np.random.default_rng(count)
    weights = rng.integers(-128, 128, (count * NR, 200)).astype(np.int8)
    for m in (3, 7, 16, 17, 31):
        q = rng.integers(-127, 128, (m, 200)).astype(np.int8)
        np.testing.assert_array_equal(product(tiles, weights, q), expected(weights, q))


@pytest.mark.parametrize("weight", [-128, -127, -1, 0, 127])
@pytest.mark.parametrize("value", [-127, 127, "alternating"])
def test_product_does_not_saturate(tiles, weight, value):
    """Constant weights against rows of +-127."""
    weights = np.full((3 * NR, 512), weight, dtype=np.int8)
    for m in (3, 16, 17, 32):
        q = np.full((m, 512), 127 if value == "alternating" else value, dtype=np.int8)
        if value == "alternating":
            q[:, ::2] = -127
        np.testing.assert_array_equal(product(tiles, weights, q), expected(weights, q))


@pytest.mark.parametrize(("m", "value"), [(3, -127), (3, 127), (17, 127)])
def test_longest_product_stays_exact(tiles, m, value):
    """K = 132104, whose sums of unsigned activations wrap on the way, at the worst case."""
    k = (2**31 - 1) // (127 * 128)
    weights = np.full((2, k), -128, dtype=np.int8)
    q = np.full((m, k), value, dtype=np.int8)
    np.testing.assert_array_equal(product(tiles, weights, q), value * -128 * k)


def test_missing_channels_are_zero(tiles):
    """Channels beyond the matrix give products of zero."""
    rng = np.random.default_rng(5)
    weights = np.zeros((NR, 70), dtype=np.int8)
    weights[:3] = rng.integers(-128, 128, (3, 70))
    q = rng.integers(-127, 128, (20, 70)).astype(np.int8)
    np.testing.assert_array_equal(packed(tiles, weights), packed(tiles, weights[:3]))
    assert not product(tiles, weights, q)[:, 3:].any()


@pytest.mark.parametrize("stride_lines", [2, 9])
def test_rows_at_any_distance(tiles, stride_lines):
    """The rows' distance is taken from their addresses."""
    rng = np.random.default_rng(2)
    weights = rng.integers(-128, 128, (NR, 100)).astype(np.int8)
    for m in (5, 19):
        q = rng.integers(-127, 128, (m, 100)).astype(np.int8)
        found = product(tiles, weights, q, stride_lines)
        np.testing.assert_array_equal(found, expected(weights, q))


@pytest.mark.parametrize("d", [1, 63, 64, 65, 130])
@pytest.mark.parametrize("m", [1, 5, 16])
def test_int16_product_of_the_router_is_exact(tiles, d, m):
    """High and low bytes apart: sums modulo 2^32 of values up to +-32767, set and added."""
    rng = np.random.default_rng(d)
    x, weights = (rng.integers(-32767, 32768, (n, d)).astype(np.int16) for n in (m, NR))
    x[0], weights[:2] = -32767, [[32767], [-32767]]
    stride = 32 * (2 * blocks(d) | 1)
    rows = aligned(2 * 16 * stride).view(np.int16).reshape(16, stride)
    for row, values in zip(rows, x, strict=False):
        quantize16(row, values.astype(np.float32))
    panel = aligned(2 * blocks(d) * K_BLOCK * NR).view(np.int16)
    channels = (ctypes.c_void_p * NR)(*[row.ctypes.data for row in weights])
    tiles.moe_qs16_pack_32c64__amx_int8(ctypes.c_size_t(d), channels, pointer(panel))
    addresses = (ctypes.c_void_p * m)(*[row.ctypes.data for row in rows[:m]])
    acc = np.full((m + 1, NR + 3), 77, dtype=np.int32)
    tiles.moe_configure_tiles__amx_int8(ctypes.c_size_t(32))
    for first in (1, 0):
        tiles.moe_qs16_gemm_16x32c64__amx_int8(
            ctypes.c_size_t(m), ctypes.c_size_t(-(-d // 2)), addresses, pointer(panel),
            ctypes.c_int(first), pointer(acc), ctypes.c_size_t(NR + 3),
        )  # fmt: skip
    tiles.moe_release_tiles__amx_int8()
    wrapped = (2 * expected(weights, x)).astype(np.uint64).astype(np.uint32).view(np.int32)
    np.testing.assert_array_equal(acc[:m, :NR], wrapped)
    assert (acc[m] == 77).all()
    assert (acc[:, NR:] == 77).all()


@pytest.mark.parametrize(("rows", "code"), [(0, -signal.SIGABRT), (3, 0)])
def test_tiles_must_be_set_first(library, rows, code):
    """The model ends a process that multiplies without having set its tiles."""
    calls = f"""
import ctypes
tiles = ctypes.CDLL({str(library)!r})
if {rows}:
    tiles.moe_configure_tiles__amx_int8(ctypes.c_size_t({rows}))
memory = ctypes.create_string_buffer(1 << 16)
start = ctypes.addressof(memory) + 63 & -64
rows = (ctypes.c_void_p * 3)(*[start + 8192 + 64 * m for m in range(3)])
tiles.moe_qu8s8_gemm_3x32c64__amx_int8(
    ctypes.c_size_t(64), ctypes.c_size_t(1), ctypes.c_size_t(2176), rows, ctypes.c_void_p(start),
    ctypes.c_void_p(start + 16384), ctypes.c_size_t(32))
"""
    argv = [sys.executable, "-c", calls]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == code
    assert ("without configuration" in done.stderr) == (code != 0)


def compilers():
    """The default compiler, and whatever else is installed."""
    others = ("g++", "clang++", *(f"clang++-{version}" for version in range(22, 13, -1)))
    found = {ask_version((path,)) for name in others if (path := shutil.which(name))}
    by_version = {compiler.version: compiler for compiler in found}
    default = find_compiler()
    return [default, *(c for version, c in by_version.items() if version != default.version)]


@pytest.fixture(scope="module", params=compilers(), ids=lambda compiler: compiler.version)
def code(request, tmp_path_factory):
    """Instructions of each function of the kernels as a compiler builds them for tiles."""
    objdump = shutil.which("objdump")
    if objdump is None:
        pytest.skip("objdump is not installed (binutils)")
    compiler = request.param
    flags = ZIG_FLAGS if compiler.is_zig else AMX.flags
    folder = tmp_path_factory.mktemp("code")
    file = compile_library(folder, ("-O3", *flags), compiler)
    argv = [objdump, "-d", "--no-show-raw-insn", "--wide", "-M", "att", str(file)]
    text = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    return functions_of(text)


STORE = re.compile(r"(?:^|,)(-?0x[0-9a-f]+)?\(%r[sb]p\)$")


def offset_of(match):
    """An address's distance from the register."""
    return int(match[1], 16) if match[1] else 0


def test_configuration_is_stored_before_it_is_read(code):
    """GCC 12 takes ldtilecfg for a read of eight bytes and may drop the other stores."""
    lines = [instruction.text for instruction in code["moe_configure_tiles__amx_int8"]]
    load = next(i for i, line in enumerate(lines) if line.startswith("ldtilecfg"))
    start = offset_of(STORE.search(lines[load].split()[1]))
    stores = [found for line in lines[:load] if (found := STORE.search(line)) and "," in line]
    offsets = [offset_of(found) - start for found in stores]
    assert any(16 <= offset < 32 for offset in offsets), "column bytes"
    assert any(48 <= offset < 56 for offset in offsets), "rows"
    assert not any("," in line and STORE.search(line) for line in lines[load:])


@pytest.mark.parametrize("m", [3, 8, 16, 32])
def test_loop_holds_its_products_and_no_spills(code, m):
    """Four products and few loads for them (two rows of tiles: four), none of them of sums."""
    loop = loop_with_most(gemm_name(m), code[gemm_name(m)], "tdpbusd")
    lines = [instruction.text for instruction in loop.instructions]
    products = occurrences(loop, "tdpbusd")
    loads = sum(line.startswith("tileloadd") for line in lines)
    assert products % 4 == 0
    assert loads * 4 <= products * (6 if m <= 16 else 4)
    assert not [line for line in lines if line.startswith(("vmov", "tilestored"))]
    assert len(lines) <= 5 * products


def test_router_multiplies_each_pair_of_signs_once(code):
    """High and low bytes, signed and unsigned: the four kinds of products in equal number."""
    name = "moe_qs16_gemm_16x32c64__amx_int8"
    loop = loop_with_most(name, code[name], "tdpbssd")
    kinds = {kind: occurrences(loop, kind) for kind in ("tdpbssd", "tdpbsud", "tdpbusd", "tdpbuud")}
    assert set(kinds.values()) == {kinds["tdpbssd"]}
    assert sum(i.text.startswith("tileloadd") for i in loop.instructions) == 4 * kinds["tdpbssd"]


def test_sums_are_read_after_their_tiles_are_stored(code):
    """GCC 12 takes tilestored for no write that a load of the same memory has to wait for."""
    for name in (gemm_name(5), "moe_qs16_gemm_16x32c64__amx_int8"):
        lines = [instruction.text for instruction in code[name]]
        stored = [i for i, line in enumerate(lines) if line.startswith("tilestored")]
        vectors = re.compile(r"vpaddd .*%[yz]mm")  # clang prefers the shorter ones
        added = [i for i, line in enumerate(lines) if vectors.match(line)]
        assert min(added, default=0) > min(stored)


def test_least_number_of_rows():
    """Here, in the table of paths and in the kernels it is the same."""
    text = (PACKED / "amx_int8" / "rows__amx_int8.h").read_text()
    stated = int(re.search(r"#define MOE_AMX_LEAST_ROWS (\d+)", text)[1])
    assert stated == LEAST == AMX.least_tile_rows
