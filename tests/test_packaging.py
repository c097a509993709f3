"""What a wheel and a source distribution hold."""

from __future__ import annotations

import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BACKEND = "hatchling.builders"
NEEDED = (
    "moe_prof/py.typed",
    "moe_prof/cli.py",
    "moe_prof/report/templates/page.html.j2",
    "moe_prof/report/templates/page.css",
    "moe_prof/report/templates/page.js",
    "moe_prof/kernels/table.py",
    "moe_prof/kernels/CMakeLists.txt",
    "moe_prof/kernels/include/moe_prof.h",
    "moe_prof/kernels/cpp/variants/scalar.cpp",
    "moe_prof/collectors/callgrind.py",
)


def lacking(names: set[str]) -> list[str]:
    """Files that an installed package needs and that are not among ``names``."""
    return [name for name in NEEDED if name not in names]


def test_wheel_holds_kernels_and_collectors(tmp_path: Path) -> None:
    """The folders behind the symlinks are in the wheel, C++ sources and py.typed too."""
    wheel = pytest.importorskip(f"{BACKEND}.wheel")
    (path,) = wheel.WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])

    assert lacking(set(zipfile.ZipFile(path).namelist())) == []


def test_source_distribution_holds_what_its_wheel_needs(tmp_path: Path) -> None:
    """An archive keeps no symlinks to folders: their files must stand in the package itself."""
    sdist = pytest.importorskip(f"{BACKEND}.sdist")
    (path,) = sdist.SdistBuilder(str(ROOT)).build(directory=str(tmp_path))
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}

    assert lacking(names) == []


EXTRAS = {"test", "compiler", "peers", "notebooks", "ep", "cluster", "calltree"}


def test_extras_are_those_of_the_design() -> None:
    """What is optional can be installed by name."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

    assert set(project["optional-dependencies"]) >= EXTRAS
