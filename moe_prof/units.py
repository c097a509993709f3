"""Formatting of values for people, in one place; inside the toolkit everything is SI."""

from __future__ import annotations

_TIME_STEPS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"))
_SI_STEPS = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_BINARY_STEPS = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))
SMALLEST_TENTH = 5e-4
"""The smallest fraction that one decimal of percent does not round to zero."""


def time_text(value_s: float) -> str:
    """Seconds with a fitting unit: ``3.42 us``, ``739 us``, ``1.25 s``."""
    for size, unit in _TIME_STEPS:
        if abs(value_s) >= size:
            return f"{digits_text(value_s / size)} {unit}"
    return f"{digits_text(value_s / 1e-9)} ns" if value_s else "0 s"


def time_scale(longest_s: float) -> tuple[float, str]:
    """What seconds are multiplied with for an axis, and its unit."""
    size, unit = next((step for step in _TIME_STEPS if longest_s >= step[0]), (1e-9, "ns"))
    return 1 / size, unit


def time_range_text(low_s: float, high_s: float) -> str:
    """Two times with the larger one's unit: ``28.1 .. 29.3 ms``."""
    for size, unit in _TIME_STEPS:
        if abs(high_s) >= size:
            return f"{digits_text(low_s / size)} .. {digits_text(high_s / size)} {unit}"
    return f"{digits_text(low_s / 1e-9)} .. {digits_text(high_s / 1e-9)} ns"


def count_text(value: float) -> str:
    """A count with an SI letter: ``63.4 M``."""
    for size, letter in _SI_STEPS:
        if abs(value) >= size:
            return f"{digits_text(value / size)} {letter}"
    return f"{value:g}" if value == int(value) else digits_text(value)


def plural_text(count: int, noun: str) -> str:
    """A number of things: ``1 token``, ``2 tokens``."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def named_text(name: str, text: str) -> str:
    """``name: text``, the name once where the text begins with it already."""
    return text if text.startswith(f"{name}: ") else f"{name}: {text}"


def bytes_text(value: float) -> str:
    """Bytes in binary units: ``1.59 MiB``."""
    for size, unit in _BINARY_STEPS:
        if abs(value) >= size:
            return f"{digits_text(value / size)} {unit}"
    return f"{value:g} B"


def byte_pair_text(first: float, second: float) -> str:
    """Two numbers of bytes with the larger one's unit: ``2.03 / 2.00 MiB``."""
    for size, unit in _BINARY_STEPS:
        if max(abs(first), abs(second)) >= size:
            return f"{digits_text(first / size)} / {digits_text(second / size)} {unit}"
    return f"{first:g} / {second:g} B"


def share_text(value: float | None) -> str:
    """A fraction as percent: ``75.0 %``, ``0.004 %``; a missing one as a dash."""
    if value is None:
        return "-"
    if value and abs(value) < SMALLEST_TENTH:
        return f"{100 * value:.1g} %"
    return f"{100 * value:.1f} %"


def digits_text(value: float) -> str:
    """Three significant digits, without an exponent for everyday sizes."""
    size = abs(value)
    if size >= 1000 or (size and size < 1e-3):
        return f"{value:.4g}"
    if size >= 100:
        return f"{value:.0f}"
    if size >= 10:
        return f"{value:.1f}"
    if 0 < size < 0.1:
        return f"{value:.3g}"
    return f"{value:.2f}"
