"""Feed damaged outputs to ``import``: ``python -m tests.fuzz_import --minutes 10``.

Every input is a recorded output with random damage (bytes changed, pieces cut, doubled, swapped
with another output, wrapped, stored in another encoding) or noise. It must end in rows that keep
the rules of ``tests.invariants`` or in one clear error; all else is printed and its input kept.
"""

from __future__ import annotations

import argparse
import gzip
import random
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from moe_prof.errors import MoeProfError
from moe_prof.importing.base import Labels
from moe_prof.importing.load import load
from moe_prof.importing.source import opened
from tests.invariants import broken_error, broken_import

FIXTURES = Path(__file__).parent / "fixtures"
MAX_SEED_BYTES = 12_000
SLOW_S = 5.0
TOKENS = (
    b"", b" ", b"\n", b"\r\n", b"\t", b",", b";", b"%", b"#", b"-", b"nan", b"inf", b"-1", b"1e999",
    b"<not counted>", b"<not supported>", b"{", b"}", b'"', b"\x00", b"\xff", b"\xc3", b"(", b")",
    b"/", b":", b"0x", b"99999999999999999999999999", b"\xe2\x80\xaf", b"\xd9\xa3", b"==1== ",
    b"\xc2\xb2", b"[1]", b"+-", b"1.2.3", b"seconds time elapsed", b"calls=", b"fn=(1)",
    b"events: ",
)  # fmt: skip

Change = Callable[[random.Random, bytes, list[bytes]], bytes]


def seeds() -> list[bytes]:
    """Recorded outputs of every kind, long ones cut."""
    paths = sorted(
        path
        for folder in ("corpus", "perf", "llvm_mca", "callgrind", "import")
        if (FIXTURES / folder).is_dir()
        for path in (FIXTURES / folder).iterdir()
        if path.suffix in (".txt", ".csv", ".json", ".out", ".stderr") and path.name != "index.json"
    )
    return [path.read_bytes()[:MAX_SEED_BYTES] for path in paths]


def _token(rng: random.Random, data: bytes, others: list[bytes]) -> bytes:
    start = rng.randint(0, len(data))
    return data[:start] + rng.choice(TOKENS) * rng.randint(1, 3) + data[start + rng.randint(0, 6) :]


def _cut(rng: random.Random, data: bytes, others: list[bytes]) -> bytes:
    start = rng.randint(0, len(data))
    return data[:start] + data[start + rng.randint(0, 400) :]


def _truncate(rng: random.Random, data: bytes, others: list[bytes]) -> bytes:
    return (
        data[: rng.randint(0, len(data))]
        if rng.random() < 0.5
        else data[rng.randint(0, len(data)) :]
    )


def _double(rng: random.Random, data: bytes, others: list[bytes]) -> bytes:
    start = rng.randint(0, len(data))
    return data[:start] + data[start : start + rng.randint(0, 300)] * 2 + data[start:]


def _splice(rng: random.Random, data: bytes, others: list[bytes]) -> bytes:
    other = rng.choice(others)
    start, begin = rng.randint(0, len(data)), rng.randint(0, len(other))
    return data[:start] + other[begin : begin + rng.randint(0, 2000)] + data[start:]


def _flip(rng: random.Random, data: bytes, others: list[bytes]) -> bytes:
    if not data:
        return data
    place = rng.randrange(len(data))
    return data[:place] + bytes([rng.randrange(256)]) + data[place + 1 :]


def _lines(rng: random.Random, data: bytes, others: list[bytes]) -> bytes:
    lines = data.split(b"\n")
    first, second = rng.randrange(len(lines)), rng.randrange(len(lines))
    lines[first], lines[second] = lines[second], lines[first]
    return b"\n".join(lines)


def _wrap(rng: random.Random, data: bytes, others: list[bytes]) -> bytes:
    width = rng.choice((40, 60, 72, 80))
    return b"\n".join(
        line[start : start + width]
        for line in data.split(b"\n")
        for start in range(0, max(1, len(line)), width)
    )


def _numbers(rng: random.Random, data: bytes, others: list[bytes]) -> bytes:
    old = str(rng.randrange(10)).encode()
    return data.replace(
        old, rng.choice((b"", b"-", b"9" * 30, b"0", b".", b",")), rng.randint(1, 4)
    )


CHANGES: tuple[Change, ...] = (
    _token, _token, _cut, _truncate, _double, _splice, _flip, _flip, _lines, _wrap, _numbers,
)  # fmt: skip


def damaged(rng: random.Random, samples: list[bytes]) -> bytes:
    """One input."""
    if rng.random() < 0.03:
        return rng.randbytes(rng.randint(0, 600))
    data = rng.choice(samples)
    for _ in range(rng.randint(1, 8)):
        data = rng.choice(CHANGES)(rng, data, samples)
    stored = rng.random()
    if stored < 0.03:
        return data.decode("utf-8", "replace").encode(rng.choice(("utf-16", "utf-16-le", "utf-32")))
    if stored < 0.06:
        packed = gzip.compress(data)
        return packed[: rng.randint(0, len(packed))] if rng.random() < 0.5 else packed
    return data


def outcome(path: Path) -> tuple[str, list[str]]:
    """What became of a file (kinds found, or the error's class), and what is wrong with that."""
    try:
        with opened(str(path)) as source:
            found = load(source, Labels("S1", "v"), lambda share: None)
    except MoeProfError as error:
        return type(error).__name__, broken_error(error, str(path))
    return " + ".join(found.titles) or "nothing", broken_import(found)


def main() -> int:
    """Run for the time given; returns 1 when anything was found."""
    parser = argparse.ArgumentParser(description="feed damaged outputs to import")
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, default=Path(tempfile.gettempdir()))
    args = parser.parse_args()
    rng = random.Random(args.seed)
    samples = seeds()
    ended = time.monotonic() + 60 * args.minutes
    kinds: Counter[str] = Counter()
    failures: Counter[str] = Counter()
    slowest = 0.0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "input"
        while time.monotonic() < ended:
            data = damaged(rng, samples)
            path.write_bytes(data)
            began = time.monotonic()
            try:
                kind, wrong = outcome(path)
            except Exception:  # noqa: BLE001  (that there is none is what is tested)
                kind, wrong = "exception", [traceback.format_exc()]
            took_s = time.monotonic() - began
            slowest = max(slowest, took_s)
            kinds[kind] += 1
            if took_s > SLOW_S:
                wrong = [*wrong, f"took {took_s:.1f} s"]
            for text in wrong[:1]:
                label = text.strip().splitlines()[-1][:160]
                failures[label] += 1
                if failures[label] == 1:
                    kept = args.keep / f"fuzz_import_{len(failures)}.bin"
                    kept.write_bytes(data)
                    sys.stdout.write(f"{kept}: {text}\n")
    total = sum(kinds.values())
    sys.stdout.write(f"{total} inputs, {len(kinds)} outcomes, slowest {slowest:.2f} s\n")
    for kind, count in kinds.most_common(12):
        sys.stdout.write(f"  {count:7} {kind}\n")
    sys.stdout.write(f"{sum(failures.values())} failures of {len(failures)} kinds\n")
    for label, count in failures.most_common():
        sys.stdout.write(f"  {count:7} {label}\n")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
