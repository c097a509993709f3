"""Runs the AMX path's machine code on Bochs, which has tiles: a separate, longer command.

    python -m tests.emulation.bare_metal_bochs --root FOLDER

FOLDER holds a Debian 13 with the packages bochs, bochs-term, bochsbios and vgabios, as debootstrap
makes one; xorriso and a C++ compiler with AMX are needed here. The guest (bare_metal/) boots from a
CD, multiplies and answers over a serial port that is a file. Exit code 0: every product is right.
"""

from __future__ import annotations

import argparse
import os
import pty
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from moe_prof.kernels.build import SOURCE_DIR
from moe_prof.kernels.compiler import find_compiler

GUEST = Path(__file__).parent / "bare_metal"
PACKED = SOURCE_DIR / "cpp" / "packed"
FREESTANDING = (
    "-O2", "-ffreestanding", "-fno-stack-protector", "-fcf-protection=none", "-fno-pic", "-fno-pie",
    "-mno-red-zone", "-mcmodel=small", "-fno-exceptions", "-fno-rtti",
    "-fno-tree-loop-distribute-patterns",
)  # fmt: skip
PATH_FLAGS = ("-std=c++17", "-march=x86-64-v4", "-mavx512vnni", "-mamx-tile", "-mamx-int8")
SECTOR = 512
TIMEOUT_S = 300
CONFIG = """
config_interface: textconfig
display_library: term
memory: guest=64, host=64
romimage: file={root}/usr/share/bochs/BIOS-bochs-latest
vgaromimage: file={root}/usr/share/bochs/VGABIOS-lgpl-latest
cpu: model={model}, count=1, ips=100000000, reset_on_triple_fault=0
clock: sync=none, time0=local
ata0: enabled=1, ioaddr1=0x1f0, ioaddr2=0x3f0, irq=14
ata0-master: type=cdrom, path={folder}/boot.iso, status=inserted
boot: cdrom
com1: enabled=1, mode=file, dev={folder}/answer.txt
log: {folder}/bochs.log
panic: action=fatal
"""


def compile_guest(folder: Path) -> list[str]:
    """The objects of the guest and of the kernels that it calls."""
    compiler = find_compiler()
    sources = [
        file for file in sorted((PACKED / "amx_int8").glob("*.cpp"))
        if "table" not in file.name and "f32" not in file.name
    ]  # fmt: skip
    sources += [PACKED / "avx512_vnni" / f"qu8s8_gemm_{m}x32c4__avx512_vnni.cpp" for m in (1, 2)]
    objects = []
    for source in (GUEST / "guest.cpp", GUEST / "start.S", *sources):
        flags = PATH_FLAGS if source.parent != GUEST else ("-std=c++17", "-mgeneral-regs-only")
        if source.suffix == ".S":
            flags = ()
        out = folder / f"{source.stem}.o"
        include = f"-I{SOURCE_DIR / 'cpp'}"
        run(*compiler.argv, *FREESTANDING, *flags, include, "-c", "-o", str(out), str(source))
        objects.append(str(out))
    return objects


def build_image(folder: Path) -> None:
    """The guest as a CD that a BIOS loads whole."""
    objects = compile_guest(folder)
    run(
        "ld",
        "-m",
        "elf_x86_64",
        "-T",
        str(GUEST / "link.ld"),
        "-o",
        f"{folder}/guest.elf",
        *objects,
    )
    disk = folder / "disk"
    disk.mkdir()
    image = disk / "boot.bin"
    run("objcopy", "-O", "binary", "-R", ".bss", f"{folder}/guest.elf", str(image))
    sectors = -(-image.stat().st_size // 2048) * 4
    os.truncate(image, sectors * SECTOR)
    run(
        "xorriso", "-as", "mkisofs", "-quiet", "-o", f"{folder}/boot.iso", "-b", "boot.bin", "-c",
        "boot.cat", "-no-emul-boot", "-boot-load-size", str(sectors), str(disk),
    )  # fmt: skip


def run(*argv: str) -> None:
    """A step; its words are shown when it fails."""
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{argv[0]} failed: {done.stderr.strip()[:2000]}")


def boot(root: Path, model: str, folder: Path) -> tuple[str, str]:
    """What the guest answered, and what Bochs showed."""
    (folder / "bochsrc").write_text(CONFIG.format(root=root, model=model, folder=folder))
    library = root / "usr" / "lib" / "x86_64-linux-gnu"
    argv = [
        str(root / "lib64" / "ld-linux-x86-64.so.2"), "--library-path", str(library),
        str(root / "usr" / "bin" / "bochs-bin"), "-q", "-f", str(folder / "bochsrc"),
    ]  # fmt: skip
    env = os.environ | {
        "TERM": "xterm",
        "TERMINFO_DIRS": f"{root}/usr/share/terminfo:{root}/lib/terminfo",
        "LTDL_LIBRARY_PATH": str(library / "bochs" / "plugins"),
        "BXSHARE": str(root / "usr" / "share" / "bochs"),
    }  # fmt: skip
    screen, terminal = pty.openpty()
    try:
        with subprocess.Popen(
            argv, stdin=terminal, stdout=terminal, stderr=terminal, env=env, start_new_session=True
        ) as process:
            os.close(terminal)
            shown = drain(screen, process)
    finally:
        os.close(screen)
    answer = folder / "answer.txt"
    text = answer.read_text(encoding="ascii", errors="replace") if answer.is_file() else ""
    return text, shown


def drain(screen: int, process: subprocess.Popen) -> str:
    """The emulated screen's output until Bochs ends."""
    shown = b""
    timer = threading.Timer(TIMEOUT_S, process.kill)
    timer.start()
    try:
        while part := os.read(screen, 1 << 16):
            shown += part
    except OSError:  # the other end is closed
        pass
    finally:
        process.wait()
        timer.cancel()
    return shown.decode(errors="replace")


def main() -> int:
    """Build, boot, print the answer."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, required=True, help="folder of the Debian with Bochs")
    parser.add_argument("--model", default="sapphire_rapids", help="Bochs's name of the CPU")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        build_image(folder)
        answer, said = boot(options.root.absolute(), options.model, folder)
        sys.stdout.write(answer)
        if "RESULT" not in answer:
            log = folder / "bochs.log"
            sys.stderr.write(log.read_text(errors="replace")[-3000:] if log.is_file() else said)
    return 0 if "RESULT OK" in answer else 1


if __name__ == "__main__":
    sys.exit(main())
