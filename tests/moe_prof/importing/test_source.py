"""Encodings, compression, pipes, and files that are no text."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import sys
import threading
from pathlib import Path

import pytest

from moe_prof.errors import InputError
from moe_prof.importing import source as sources
from moe_prof.importing.source import opened
from tests.moe_prof.importing.reading import STAT, read_bytes, values

CYCLES = 1234567891.0


@pytest.mark.parametrize(
    "data",
    [
        STAT.encode(),
        STAT.encode("utf-8-sig"),
        STAT.replace("\n", "\r\n").encode(),
        STAT.encode("utf-16"),
        b"\xfe\xff" + STAT.encode("utf-16-be"),
        STAT.encode("utf-16-le"),
        STAT.encode("utf-16-be"),
        STAT.replace("\n", "\r\n").encode("utf-16"),
        STAT.encode("utf-32"),
        gzip.compress(STAT.encode()),
        lzma.compress(STAT.encode()),
        bz2.compress(STAT.encode()),
        gzip.compress(STAT.encode("utf-16")),
        STAT.replace("cycles", "\x1b[31mcycles\x1b[0m\x1b[K").encode(),
        ("\x1b]0;title\x07" + STAT).encode(),
        b"\x00" + STAT.encode(),
        b"schr\xf6dinger\n" + STAT.encode(),
        STAT.replace(",", "\xa0").encode("latin-1"),
    ],
    ids=[
        "utf8", "bom", "crlf", "utf16", "utf16be-bom", "utf16le", "utf16be", "utf16-crlf", "utf32",
        "gzip", "xz", "bzip2", "gzip-utf16", "colours", "title", "nul", "latin1-line",
        "latin1-grouping",
    ],
)  # fmt: skip
def test_texts(data: bytes, tmp_path: Path) -> None:
    """The same counts are found, however the text is stored."""
    found = values(read_bytes(tmp_path, data).rows)

    assert (found["cycles"], found["task-clock"], found["LLC-load-misses"]) == (
        CYCLES, 0.0125, None,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "is empty"),
        (b" \n\t\r\n", "nothing but blanks"),
        (gzip.compress(b""), "holds nothing"),
        (b"\x1f\x8b\x08\x00garbage", "damaged gzip"),
        (b"PERFILE2\x68\x00\x00\x00", "perf script -i"),
        (b"\x7fELF\x02\x01\x01\x00", "ELF"),
        (b"gmon\x01\x00\x00\x00", "gprof PROGRAM"),
        (b"SQLite format 3\x00 ", "vtune -report"),
        (b"\x28\xb5\x2f\xfd\x04\x00", "zstd -d"),
        (b"PK\x03\x04\x14\x00", "unpack it"),
        (b"\x89PNG\r\n\x1a\n", "picture"),
        (b"%PDF-1.7\n", "PDF"),
        (b"<!DOCTYPE html>\n<html><body>", "an HTML page"),
        (b"\n  <html lang='de'>", "an HTML page"),
        (b"<?xml version='1.0'?>\n<html>", "an HTML page"),
        (b"<?xml version='1.0'?>\n<a/>", "an XML document"),
        (bytes(range(256)) * 8, "binary file"),
        (b"\x01\x02\x03\x04", "binary file"),
    ],
)
def test_no_text(data: bytes, words: str, tmp_path: Path) -> None:
    """What is no text is named with what to do, in one line that begins with the file."""
    with pytest.raises(InputError) as caught:
        read_bytes(tmp_path, data, "some file.bin")

    message = str(caught.value)
    assert words in message
    assert message.startswith(str(tmp_path / "some file.bin"))
    assert "\n" not in message


def test_what_is_no_file(tmp_path: Path) -> None:
    """A folder, a session, a VTune result, a missing file, a device."""
    session, result = tmp_path / "session", tmp_path / "r000hs"
    for folder in (session, result):
        folder.mkdir()
    (session / "manifest.json").write_text("{}")
    (result / "r000hs.vtune").write_text("")
    said = []
    for name in (str(tmp_path), str(session), str(result), str(tmp_path / "none"), os.devnull):
        with pytest.raises(InputError) as caught, opened(name):
            pass
        said.append(str(caught.value).removeprefix(name).removeprefix("there is no file "))

    assert said == [
        " is a folder; name the files in it",
        " is a folder; it is a session already; moe_prof.load reads it",
        f" is a folder; for a VTune result run `vtune -report hotspots -r {result} -format csv` "
        "and import what it prints",
        str(tmp_path / "none"),
        " is a device or a socket, not a file",
    ]


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every file")
def test_unreadable_file(tmp_path: Path) -> None:
    """The system's own word says why."""
    path = tmp_path / "secret.txt"
    path.write_text(STAT)
    path.chmod(0)

    with pytest.raises(InputError, match="Permission denied"), opened(str(path)):
        pass


def test_pipes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """stdin and a named pipe are read to their end before anything is judged."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    writer = threading.Thread(target=lambda: fifo.write_text(STAT))
    writer.start()
    with opened(str(fifo)) as source:
        from_fifo = sources.read_lines(source)
    writer.join()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(STAT.encode())))
    with opened("-") as source:
        from_stdin = sources.read_lines(source)
        name = source.name

    assert (from_fifo, from_stdin, name) == (
        (STAT.split("\n"), []),
        (STAT.split("\n"), []),
        "stdin",
    )


def test_terminal_as_stdin(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a pipe the user is told instead of being waited for."""

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stdin", Terminal())

    with pytest.raises(InputError, match="stdin is a terminal"), opened("-"):
        pass


def test_compressed_data_that_end_early(tmp_path: Path) -> None:
    """What could be decompressed is read, and the damage is said."""
    filler = "".join(f"line {number} of the program {number * 7919}\n" for number in range(3000))
    data = gzip.compress((STAT + filler).encode())
    found = read_bytes(tmp_path, data[: len(data) // 2])

    assert values(found.rows)["cycles"] == CYCLES
    assert "end early or are damaged" in found.remarks[0]


def test_too_large_for_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kind that must be held as a whole has a limit, said with the file's name."""
    monkeypatch.setattr(sources, "MAX_TEXT_BYTES", 1 << 20)
    data = (STAT + "x" * (2 << 20)).encode()

    with pytest.raises(InputError, match="larger than 1 MiB"):
        read_bytes(tmp_path, data)
    with pytest.raises(InputError, match="larger than 1 MiB"):
        read_bytes(tmp_path, gzip.compress(data))
