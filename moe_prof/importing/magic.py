"""What a file is that is no text: named by its first bytes, with what to do about it.

Source: magic numbers as in ``file(1)``; perf's from ``tools/perf/util/header.c``.
"""

from __future__ import annotations

from moe_prof.errors import InputError

# first bytes: what the file is, and what to do; {0} is its name
_MAGIC: tuple[tuple[bytes, str], ...] = (
    (b"PERFILE2", "a perf.data file; run `perf report --stdio -i {0}` or `perf script -i {0}` on "
     "the machine that recorded it and import what they print"),
    (b"2ELIFREP", "a perf.data file of a machine with the other byte order; run `perf report "
     "--stdio -i {0}` there and import what it prints"),
    (b"PERFFILE", "a perf.data file of an old version; run `perf report --stdio -i {0}` with that "
     "version and import what it prints"),
    (b"\x7fELF", "an ELF program or library, not a profile; import what a profiler wrote about it"),
    (b"gmon", "gprof's raw gmon.out; run `gprof PROGRAM {0}` and import what it prints"),
    (b"SQLite format 3\x00", "an SQLite database; for VTune run `vtune -report hotspots -r RESULT "
     "-format csv` and import what it prints"),
    (b"\x28\xb5\x2f\xfd", "zstd-compressed; run `zstd -d {0}` and import the result"),
    (b"PK\x03\x04", "a zip archive; unpack it and import the files in it"),
    (b"BC\xc0\xde", "LLVM bitcode, not a profile"),
    (b"PAR1", "a parquet table; load a session of moe_prof with moe_prof.load instead"),
    (b"%PDF", "a PDF document; export the profiler's text or CSV"),
    (b"\x89PNG", "a picture; export the profiler's text or CSV"),
    (b"\xff\xd8\xff", "a picture; export the profiler's text or CSV"),
    (b"GIF8", "a picture; export the profiler's text or CSV"),
)  # fmt: skip
_MARKUP = ((b"<!doctype html", "an HTML page"), (b"<html", "an HTML page"),
           (b"<?xml", "an XML document"), (b"<svg", "a drawing (SVG)"))  # fmt: skip
_TEXT_CONTROLS = b"\t\n\r\x0b\x0c\x1b\x08\x07"
_SAMPLE_BYTES = 1 << 16
_FEW = 8  # stray control characters that a log may hold


def refuse_binary(label: str, head: bytes, *, is_marked: bool) -> None:
    """Raise for what is no text.

    Args:
        is_marked: the bytes begin with a byte-order mark.

    Raises:
        InputError: names the kind of file and what to do.
    """
    for mark, what in _MAGIC:
        if head.startswith(mark):
            raise InputError(f"{label} is {what.format(label)}")
    begin = head.removeprefix(b"\xef\xbb\xbf").lstrip()[:16].lower()
    for mark, what in _MARKUP:
        if begin.startswith(mark):
            kind = "an HTML page" if b"<html" in head[:4096].lower() else what
            raise InputError(f"{label} is {kind}; save the tool's own text instead")
    if is_marked or wide_encoding(head):
        return
    sample = head[:_SAMPLE_BYTES]
    odd = sum(byte < 32 and byte not in _TEXT_CONTROLS for byte in sample)
    if odd > max(_FEW, len(sample) // 50) or odd * 2 > len(sample):
        raise InputError(
            f"{label} is a binary file, not a profiler's text; import what the tool prints"
        )


def wide_encoding(head: bytes) -> str:
    """``utf-16-le`` or ``-be`` without a byte-order mark, by where the zero bytes are; else ""."""
    sample = head[: min(len(head), 4096) & ~1]
    if len(sample) < 8:
        return ""
    even, odd = sample[0::2].count(0), sample[1::2].count(0)
    half = len(sample) // 2
    if odd > 0.7 * half and even < 0.1 * half:
        return "utf-16-le"
    if even > 0.7 * half and odd < 0.1 * half:
        return "utf-16-be"
    return ""
