"""addr2line's answers: inlined functions, unknown places, modules that are not there."""

from __future__ import annotations

from moe_prof.collectors.symbols import Location, argv, locate, parse


def test_argv():
    """Addresses echoed, functions, inlined ones, demangled."""
    assert argv("/a") == ("addr2line", "-e", "/a", "-a", "-f", "-i", "-C")


def test_answers():
    """Innermost first, discriminators dropped; what is unknown is missing."""
    found = parse(
        "0x0000000000000010\n_mm_add(int)\n/usr/lib/emmintrin.h:9\n"
        "f<4>\n/k/f.h:51 (discriminator 3)\n"
        "0x0000000000000020\nmain\n/k/m.cpp:?\n"
        "0x0000000000000030\n??\n??:0\n"
        "0x0000000000000040\ng\n??:?\n"
    )
    assert found == {
        0x10: (Location("_mm_add(int)", "/usr/lib/emmintrin.h", 9), Location("f<4>", "/k/f.h", 51)),
        0x20: (Location("main", "/k/m.cpp", None),),
        0x40: (Location("g", "", None),),
    }


def test_modules_that_are_no_files(tmp_path):
    """The kernel and deleted files have no lines; nothing fails."""
    assert locate({"[kernel.kallsyms]": [1], str(tmp_path / "gone"): [2]}, tmp_path) == {}
