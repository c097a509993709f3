"""From a path to text: compressed, in UTF-16, in a single-byte encoding, from a pipe, or no text.

What is no text is named by its first bytes, with the command that makes text of it.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import shutil
import stat
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from moe_prof.errors import InputError
from moe_prof.importing.magic import refuse_binary, wide_encoding

STDIN = "-"
HEAD_BYTES = 1 << 20  # what is looked at to recognise the content
LARGE_BYTES = 48 << 20  # larger texts are read line by line, where their kind can be
MAX_TEXT_BYTES = 512 << 20  # of kinds that must be held as a whole
BufferedBytes = io.BufferedReader | gzip.GzipFile | lzma.LZMAFile | bz2.BZ2File
_LINES_PER_STEP = 1 << 16

_COMPRESSED = {b"\x1f\x8b": "gzip", b"\xfd7zXZ\x00": "xz", b"BZh": "bzip2"}
_BROKEN = (OSError, EOFError, zlib.error, lzma.LZMAError)
_BOMS = (
    (b"\xff\xfe\x00\x00", "utf-32"), (b"\x00\x00\xfe\xff", "utf-32"), (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"), (b"\xef\xbb\xbf", "utf-8-sig"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Source:
    """One file to import, judged by its first bytes.

    Attributes:
        name: as the user gave it; ``stdin`` for ``-``.
        path: where its bytes are: the file itself, or a copy of what came through a pipe.
        size_bytes: as stored.
        head: the first bytes of the text, decompressed.
        encoding: of the text.
        compression: ``gzip``, ``xz``, ``bzip2`` or "".
    """

    name: str
    path: Path
    size_bytes: int
    head: bytes
    encoding: str
    compression: str

    def is_larger_than(self, limit_bytes: int) -> bool:
        """Whether the text, decompressed, has more bytes than that."""
        if not self.compression or self.size_bytes > limit_bytes:
            return self.size_bytes > limit_bytes
        size = 0
        try:
            with open_bytes(self) as file:
                while size <= limit_bytes and (piece := file.read(1 << 20)):
                    size += len(piece)
        except _BROKEN:
            return False
        return size > limit_bytes


@contextmanager
def opened(name: str) -> Iterator[Source]:
    """A file (or stdin for ``-``), read far enough to know what it is.

    Raises:
        InputError: it cannot be read, is empty, a folder, or no text.
    """
    label = "stdin" if name == STDIN else name
    with tempfile.TemporaryDirectory(prefix="moe_prof_") as folder:
        try:
            path = _regular(name, label, Path(folder))
            with path.open("rb") as file:
                start = file.read(HEAD_BYTES)
            size = path.stat().st_size
        except FileNotFoundError:
            raise InputError(f"there is no file {label}") from None
        except OSError as error:
            raise InputError(f"{label} cannot be read: {error.strerror}") from error
        except ValueError as error:  # a NUL in the name
            raise InputError(f"{label!r} cannot be read: {error}") from error
        yield _judged(label, path, size, start)


def read_lines(source: Source) -> tuple[list[str], list[str]]:
    """All lines of the text, and remarks about damage to it.

    Raises:
        InputError: the text is too large to be held.
    """
    if source.is_larger_than(MAX_TEXT_BYTES):
        raise InputError(
            f"{source.name} is larger than {MAX_TEXT_BYTES >> 20} MiB, too much for this kind of "
            "output; split it, or let the tool print less"
        )
    remarks: list[str] = []
    pieces: list[bytes] = []
    try:
        with open_bytes(source) as file:
            while piece := file.read1(1 << 20):  # what is there before the damage, if any
                pieces.append(piece)
    except _BROKEN as error:
        remarks.append(_damage(source, error))
    text = _decoded(b"".join(pieces), source.encoding, remarks)
    text = text.replace("\x00", "").replace("\r\n", "\n").replace("\r", "\n")
    return text.split("\n"), remarks


@contextmanager
def line_stream(
    source: Source, step: Callable[[float], None], remarks: list[str]
) -> Iterator[Iterator[str]]:
    """The lines one after the other, for what does not fit into memory.

    Args:
        step: is told now and then which share of the file has been read.
        remarks: takes what is wrong with the file.
    """
    with (
        open_bytes(source) as raw,
        io.TextIOWrapper(raw, encoding=source.encoding, errors="replace") as text,
    ):
        yield _lines(source, text, step, remarks)


@contextmanager
def open_bytes(source: Source) -> Iterator[BufferedBytes]:
    """The decompressed bytes; the stored file's position is that of the reading."""
    with source.path.open("rb") as stored:
        if source.compression == "gzip":
            with gzip.GzipFile(fileobj=stored) as file:
                yield file
        elif source.compression == "xz":
            with lzma.LZMAFile(stored) as file:
                yield file
        elif source.compression == "bzip2":
            with bz2.BZ2File(stored) as file:
                yield file
        else:
            yield stored


def _lines(
    source: Source, text: IO[str], step: Callable[[float], None], remarks: list[str]
) -> Iterator[str]:
    size = 0
    try:
        for number, line in enumerate(text):
            size += len(line)
            if number % _LINES_PER_STEP == 0 and not source.compression:
                step(min(1.0, size / max(1, source.size_bytes)))
            yield line
    except _BROKEN as error:
        remarks.append(_damage(source, error))


def _regular(name: str, label: str, folder: Path) -> Path:
    """The file itself, or a copy of what comes through stdin or another pipe."""
    copy = folder / "input"
    if name == STDIN:
        if sys.stdin is None or sys.stdin.isatty():
            raise InputError("stdin is a terminal; pipe a tool's output into it or name a file")
        stream = getattr(sys.stdin, "buffer", None)
        with copy.open("wb") as target:
            if stream is None:  # a text stream put in its place
                target.write(sys.stdin.read().encode())
            else:
                shutil.copyfileobj(stream, target)
        return copy
    path = Path(name)
    mode = os.stat(path).st_mode
    if stat.S_ISDIR(mode):
        raise InputError(f"{label} is a folder; {_advice_for_folder(path)}")
    if stat.S_ISREG(mode):
        return path
    if stat.S_ISFIFO(mode):
        with path.open("rb") as pipe, copy.open("wb") as target:
            shutil.copyfileobj(pipe, target)
        return copy
    raise InputError(f"{label} is a device or a socket, not a file")


def _advice_for_folder(path: Path) -> str:
    if (path / "manifest.json").exists():
        return "it is a session already; moe_prof.load reads it"
    if any(path.glob("*.vtune")) or (path / "sqlite-db").exists():
        return (
            f"for a VTune result run `vtune -report hotspots -r {path} -format csv` and import "
            "what it prints"
        )
    return "name the files in it"


def _judged(label: str, path: Path, size: int, start: bytes) -> Source:
    if not start:
        raise InputError(f"{label} is empty: the tool wrote nothing, or its output went elsewhere")
    compression = next((what for mark, what in _COMPRESSED.items() if start.startswith(mark)), "")
    source = Source(label, path, size, start, "utf-8", compression)
    head = _decompressed_head(source) if compression else start
    if not head.strip(b"\x00 \t\r\n\x0b\x0c"):
        raise InputError(f"{label} holds nothing but blanks: the tool wrote nothing into it")
    refuse_binary(label, head, is_marked=any(head.startswith(mark) for mark, _ in _BOMS))
    encoding = next((name for mark, name in _BOMS if head.startswith(mark)), "")
    return Source(label, path, size, head, encoding or wide_encoding(head) or "utf-8", compression)


def _decompressed_head(source: Source) -> bytes:
    head, damage = b"", "it holds nothing"
    try:
        with open_bytes(source) as file:
            while len(head) < HEAD_BYTES and (piece := file.read1(1 << 14)):
                head += piece
    except _BROKEN as error:
        damage = str(error)
    if not head:
        raise InputError(f"{source.name} is damaged {source.compression} data: {damage}")
    return head


def _damage(source: Source, error: BaseException) -> str:
    what = f"the {source.compression} data end early or are damaged" if source.compression else (
        "the file cannot be read to its end"
    )  # fmt: skip
    return f"{what}: {error}"


def _decoded(data: bytes, encoding: str, remarks: list[str]) -> str:
    try:
        return data.decode(encoding)
    except UnicodeDecodeError:
        if not encoding.startswith("utf-8"):
            remarks.append(f"damaged {encoding.upper()}; what cannot be read is left out")
            return data.decode(encoding, errors="replace")
    decoded = [_decoded_line(line) for line in data.split(b"\n")]
    first = next(n for n, (_, good) in enumerate(decoded, 1) if not good)
    remarks.append(f"line {first}: not UTF-8; such lines are read as Latin-1")
    return "\n".join(text for text, _ in decoded).removeprefix("\ufeff")


def _decoded_line(line: bytes) -> tuple[str, bool]:
    try:
        return line.decode("utf-8"), True
    except UnicodeDecodeError:
        return line.decode("latin-1"), False
