"""``counters --target riscv64``: what is printed, and what it says where tools are missing."""

from __future__ import annotations

from moe_prof.commands import emulated_counters
from tests.kernels.riscv_builds import built
from tests.moe_prof.commands.running import main


def test_instructions_per_mac_fall_from_stage_to_stage(tmp_path):
    """Counted in the emulator: vectors need fewer than plain C++, tiles fewer than vectors."""
    built()  # skips where it cannot be had
    ran = main(
        "counters", "4,64,32,4,2", "--target", "riscv64", "--variant", "portable,rvv,ime",
        "--format", "json", "--output", tmp_path / "session",
    )  # fmt: skip
    assert ran.code == 0, ran.err
    rows = ran.rows
    per_mac = [rows[name, "instructions_per_mac"]["value"] for name in ("portable", "rvv", "ime")]
    assert per_mac == sorted(per_mac, reverse=True)
    assert rows["rvv", "instructions"]["provenance"] == "simulated"
    assert rows["rvv", "instructions"]["source"].startswith("emulated: counts only, no time")
    assert rows["ime", "instructions.matrix"]["value"] > 0
    assert ("rvv", "instructions.matrix") not in rows


def test_text_says_that_nothing_is_timed(tmp_path):
    """The table's foot names the emulator and that there is no time."""
    built()
    ran = main(
        "counters", "1,16,8,2,1", "--target", "riscv64", "--variant", "rvv", "--vector-bits", "128",
        "--output", tmp_path / "session",
    )  # fmt: skip
    assert ran.code == 0, ran.err
    assert "Emulated: counts only, no time." in ran.out
    assert "128 bits" in ran.out


def test_missing_emulator_is_named(monkeypatch, tmp_path):
    """Exit 3 with the install line, before anything is built."""
    found = emulated_counters.qemu_user.availability()
    gone = type(found)(found.name, False, "qemu-riscv64 is not installed", "apt install qemu-user")
    monkeypatch.setattr(emulated_counters.qemu_user, "availability", lambda: gone)
    ran = main("counters", "1,16,8,2,1", "--target", "riscv64", "--output", tmp_path / "session")
    assert ran.code == 3
    assert ran.complaints == [
        "moe-prof: nothing can be counted for riscv64 here: qemu-riscv64 is not installed; "
        "apt install qemu-user"
    ]
