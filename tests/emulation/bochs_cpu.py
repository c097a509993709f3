"""An emulated CPU that runs functions of a library loaded here, whatever this machine's CPU lacks.

The CPU is Bochs's Sapphire Rapids in the package bochscpu-python. Guest and host share their
addresses: every GiB in which this process has memory is one large page of the guest's tables, and
its pages are lent when they are first touched. So a function of a library that ctypes has loaded
runs on the very arrays that a native call would get. Only what is freestanding can run: no system
calls, no thread-local storage. The emulator has no tiles.

Sources: System V AMD64 ABI (registers of a call), Intel SDM volume 3A, chapter 4 (page tables), the
package's own stubs. The wheel's model lacks VNNI; its exported C symbols change the model, which
ties this file to the version below.
"""

from __future__ import annotations

import ctypes
import importlib.metadata
import mmap
import struct
import subprocess
from pathlib import Path

from moe_prof.kernels.compiler import find_compiler

VERSION = "0.4.0"
_SAPPHIRE_RAPIDS, _MODELS = 30, 40
_PAGE, _GIB = 1 << 12, 1 << 30
_OPEN_TO_USER, _LARGE = 0b111, 1 << 7
_FIRST_SLOT = 1  # GiB 0 of the guest holds the tables and the end of a call
_END_OF_CALL = _PAGE
_STACK_BYTES = 1 << 16
_INTEGERS = ("rdi", "rsi", "rdx", "rcx", "r8", "r9")
_CR0 = 1 << 31 | 1 << 16 | 1 << 5 | 1 << 4 | 1 << 1 | 1  # PG WP NE ET MP PE
_CR4 = 1 << 5 | 1 << 9 | 1 << 10 | 1 << 18  # PAE OSFXSR OSXMMEXCPT OSXSAVE
_XCR0 = 0xE7  # x87, SSE, AVX and the three parts of AVX-512

# What the wheel takes from C libraries newer than glibc 2.37: the same functions under new names.
_NEW_NAMES = r"""
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
extern "C" {
unsigned long __isoc23_strtoul(const char *s, char **e, int b) { return strtoul(s, e, b); }
unsigned long long __isoc23_strtoull(const char *s, char **e, int b) { return strtoull(s, e, b); }
long __isoc23_strtol(const char *s, char **e, int b) { return strtol(s, e, b); }
long long __isoc23_strtoll(const char *s, char **e, int b) { return strtoll(s, e, b); }
int __isoc23_sscanf(const char *s, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const int read = vsscanf(s, format, arguments);
    va_end(arguments);
    return read;
}
}
"""


class EmulationError(Exception):
    """The emulated code did something that would have ended a process."""


def absence() -> str:
    """Why the emulator cannot be used here, "" when it can."""
    try:
        version = importlib.metadata.version("bochscpu-python")
    except importlib.metadata.PackageNotFoundError:
        return "bochscpu-python is not installed"
    return "" if version == VERSION else f"bochscpu-python is {version}, not {VERSION}"


def load(folder: Path):
    """The emulator's module, its CPU model set; folder: for what an older C library needs."""
    if not hasattr(ctypes.CDLL(None), "__isoc23_strtoull"):
        source, library = folder / "new_names.cpp", folder / "new_names.so"
        source.write_text(_NEW_NAMES)
        argv = [*find_compiler().argv, "-shared", "-fPIC", "-O1", "-o", str(library), str(source)]
        subprocess.run(argv, check=True, capture_output=True)
        ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
    import bochscpu  # noqa: PLC0415  # only now can it be loaded
    import bochscpu.cpu  # noqa: PLC0415
    import bochscpu.memory  # noqa: PLC0415
    from bochscpu import _bochscpu  # noqa: PLC0415

    symbols = ctypes.CDLL(_bochscpu.__file__)
    symbols.sim_get_param_enum.restype = ctypes.c_void_p
    model = ctypes.c_void_p(symbols.sim_get_param_enum(b"cpu.model"))
    symbols._ZN14bx_param_num_c9set_rangeEmm(model, ctypes.c_uint64(0), ctypes.c_uint64(_MODELS))
    symbols._ZN14bx_param_num_c3setEl(model, ctypes.c_int64(_SAPPHIRE_RAPIDS))
    return bochscpu


class Cpu:
    """The emulated CPU, the only one in a process; ``function`` makes callables that run on it."""

    def __init__(self, folder: Path) -> None:
        self._bochs = load(folder)
        self._session = self._bochs.Session()
        self._session.missing_page_handler = self._lend
        self._kept: list[mmap.mmap] = []
        _, self._nowhere = self._page()
        self._removed: list[int] = []
        self._gib_of_slot: list[int] = [0] * _FIRST_SLOT
        self._slots: dict[int, int] = {}
        self._second: dict[int, ctypes.Array[ctypes.c_uint64]] = {}
        self._ranges: list[tuple[int, int]] = []
        self._wild: int | None = None
        self._fault: tuple[int, int] | None = None
        self._next_table = 16 * _PAGE
        self._root_at, self._root = self._table()
        code, end = self._page()
        code[0] = 0xF4  # hlt, which a program may not execute: it stops the run
        self._bochs.memory.page_insert(_END_OF_CALL, end)
        low_at, low = self._table()
        low[0] = _OPEN_TO_USER | _LARGE
        self._root[0] = low_at | _OPEN_TO_USER
        self._second[0] = low
        stack = mmap.mmap(-1, _STACK_BYTES)
        self._kept.append(stack)
        self._stack = ctypes.addressof(ctypes.c_char.from_buffer(stack))

    def function(self, native):
        """The same as a ctypes function that returns an integer or a float, but run here."""
        address = ctypes.cast(native, ctypes.c_void_p).value

        def call(*arguments):
            return self._call(address, arguments, native.restype)

        return call

    def _page(self) -> tuple[mmap.mmap, int]:
        page = mmap.mmap(-1, _PAGE)
        self._kept.append(page)
        return page, ctypes.addressof(ctypes.c_char.from_buffer(page))

    def _table(self):
        page, address = self._page()
        at = self._next_table
        self._next_table += _PAGE
        self._bochs.memory.page_insert(at, address)
        return at, (ctypes.c_uint64 * 512).from_buffer(page)

    def _read_memory_map(self) -> None:
        """Note what memory this process has, and give every GiB of it a place in the guest."""
        self._ranges.clear()
        for line in Path("/proc/self/maps").read_text(encoding="ascii").splitlines():
            bounds, access = line.split()[:2]
            begin, end = (int(bound, 16) for bound in bounds.split("-"))
            if "r" not in access or begin >= 1 << 47:
                continue
            self._ranges.append((begin, end))
            for gib in range(begin // _GIB, (end - 1) // _GIB + 1):
                if gib not in self._slots:
                    self._map(gib)

    def _map(self, gib: int) -> None:
        slot = len(self._gib_of_slot)
        self._gib_of_slot.append(gib)
        self._slots[gib] = slot
        high, low = divmod(gib, 512)
        if high not in self._second:
            at, self._second[high] = self._table()
            self._root[high] = at | _OPEN_TO_USER
        self._second[high][low] = slot * _GIB | _OPEN_TO_USER | _LARGE

    def _lend(self, physical: int) -> None:
        slot, offset = divmod(physical, _GIB)
        address = self._gib_of_slot[slot] * _GIB + offset if slot < len(self._gib_of_slot) else 0
        if not any(begin <= address < end for begin, end in self._ranges):
            self._wild = address
            self._bochs.memory.page_insert(physical & -_PAGE, self._nowhere)
            self._removed.append(physical & -_PAGE)
            self._session.stop()
            return
        self._bochs.memory.page_insert(physical & -_PAGE, address & -_PAGE)

    def _call(self, address: int, arguments, result_type):
        self._read_memory_map()
        self._wild = self._fault = None
        self._session.cpu.state = self._state(address, arguments)
        hook = self._bochs.Hook()
        hook.exception = self._on_exception
        self._session.run([hook])
        while self._removed:
            self._bochs.memory.page_remove(self._removed.pop())
        if self._wild is not None:
            raise EmulationError(f"access to memory that the process lacks: {self._wild:#x}")
        if self._fault is None or self._fault[1] != _END_OF_CALL + 1:
            raise EmulationError(f"exception (vector, instruction): {self._fault}")
        state = self._session.cpu.state
        if result_type is ctypes.c_float:
            return struct.unpack("<f", struct.pack("<I", state.zmm[0].q[0] & 0xFFFFFFFF))[0]
        return result_type(state.rax).value

    def _on_exception(self, session, cpu, vector: int, code: int) -> None:
        del cpu, code
        self._fault = (vector, session.cpu.rip)
        session.stop()

    def _state(self, address: int, arguments):
        bochs = self._bochs
        state = bochs.State()
        bochs.cpu.set_long_mode(state)
        state.cr3, state.cr0, state.cr4, state.xcr0 = self._root_at, _CR0, _CR4, _XCR0
        state.mxcsr, state.mxcsr_mask, state.rflags = 0x1F80, 0xFFFF, 2
        state.cs = self._segment(0x33, 0x22FB)
        for register in ("ds", "ss", "es", "fs", "gs"):
            setattr(state, register, self._segment(0x2B, 0xCF3))
        integers = [a.value or 0 if isinstance(a, ctypes._SimpleCData) else ctypes.addressof(a)
                    for a in arguments if not isinstance(a, ctypes.c_float)]  # fmt: skip
        integers = [value & 0xFFFFFFFFFFFFFFFF for value in integers]
        for register, value in zip(_INTEGERS, integers, strict=False):
            setattr(state, register, value)
        vectors = list(state.zmm)
        singles = [a.value for a in arguments if isinstance(a, ctypes.c_float)]
        for index, single in enumerate(singles):
            vectors[index].q = [struct.unpack("<I", struct.pack("<f", single))[0], *[0] * 7]
        state.zmm = vectors
        on_stack = struct.pack(f"<{1 + len(integers[6:])}Q", _END_OF_CALL, *integers[6:])
        top = self._stack + _STACK_BYTES - 512 - 8  # 16-aligned in front of the return address
        ctypes.memmove(top, on_stack, len(on_stack))
        state.rip, state.rsp = address, top
        return state

    def _segment(self, selector: int, attributes: int):
        segment = self._bochs.Segment()
        segment.present, segment.selector = True, selector
        segment.base, segment.limit, segment.attr = 0, 0xFFFFFFFF, attributes
        return segment
