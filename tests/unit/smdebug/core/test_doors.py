"""The doors of `smdebug.core`: what code written for smdebug imports is the module that the table names."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

import smdebug.core

FOLDER = Path(smdebug.core.__file__).parent
TABLE = dict(re.findall(r"^    (\S+) +smdebug\.(\S+)$", smdebug.core.__doc__ or "", re.MULTILINE))
PACKAGES = {"access_layer", "tfevent", "tfrecord"}


def find_doors() -> set[str]:
    paths = (path.relative_to(FOLDER) for path in FOLDER.rglob("*.py"))
    return {".".join(path.with_suffix("").parts).removesuffix(".__init__") for path in paths} - {"__init__"}


DOORS = sorted(find_doors())


def test_the_table_lists_every_door() -> None:
    assert TABLE.keys() | PACKAGES == find_doors()


@pytest.mark.parametrize("door", DOORS)
def test_a_door_is_thin(door: str) -> None:
    path = FOLDER / door.replace(".", "/")
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 10


@pytest.mark.parametrize("door", sorted(TABLE.keys() - {"hook_utils"}))
def test_a_door_is_the_module_behind_it(door: str) -> None:
    assert importlib.import_module(f"smdebug.core.{door}") is importlib.import_module(f"smdebug.{TABLE[door]}")


def test_scripts_written_for_smdebug_import_every_door() -> None:
    lines = []
    for door in DOORS:
        parent, _, name = f"smdebug.core.{door}".rpartition(".")
        lines += [f"import {parent}.{name}", f"{parent}.{name}.__doc__", f"from {parent} import {name}"]
    command = [sys.executable, "-W", "error", "-c", "\n".join(lines)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


def test_nothing_of_the_library_imports_a_door() -> None:
    door = re.compile(r"(from|import) smdebug\.core\b")
    inside = [path for path in FOLDER.parent.rglob("*.py") if FOLDER not in path.parents]
    assert [path for path in inside if door.search(path.read_text(encoding="utf-8"))] == []
