"""Tests of the import aliases of `smdebug.core`, against their table."""

import importlib
import pickle
import re
import subprocess
import sys
from pathlib import Path

import pytest

import smdebug.core
from smdebug.core.import_aliases import ALIASES, PACKAGES
from smdebug.mode_keys import ModeKeys

FOLDER = Path(smdebug.core.__file__).parent
ALL_ALIASES = sorted(ALIASES | PACKAGES)


@pytest.mark.parametrize("alias", sorted(ALIASES))
def test_an_alias_is_the_module_that_it_names(alias: str) -> None:
    assert importlib.import_module(f"smdebug.core.{alias}") is importlib.import_module(ALIASES[alias])


def test_a_package_of_aliases_has_the_public_names_of_its_modules() -> None:
    package = importlib.import_module("smdebug.core.access_layer")
    assert package.TSAccessFile is importlib.import_module("smdebug.core.access_layer.file").TSAccessFile
    assert {"TSAccessFile", "has_training_ended", "S3Handler"} <= set(package.__all__)
    assert package.file is importlib.import_module("smdebug.compatibility.access_files")


def test_other_names_do_not_exist() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"smdebug\.core\.there_is_none"):
        importlib.import_module("smdebug.core.there_is_none")


def test_a_pickle_of_smdebug_names_its_classes_by_aliases() -> None:
    assert pickle.loads(b"csmdebug.core.modes\nModeKeys\n(I1\ntR.") is ModeKeys.TRAIN


@pytest.mark.nightly  # a type checker reads the same modules that the next test imports
def test_a_type_checker_takes_what_scripts_import(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(
        "from smdebug.core.access_layer.utils import has_training_ended\n"
        "from smdebug.core.modes import ModeKeys\n"
        "print(has_training_ended('run'), ModeKeys.TRAIN)\n"
    )
    checker = [sys.executable, "-m", "mypy", "--strict", "--no-incremental", "--config-file="]
    done = subprocess.run([*checker, "script.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.slow
def test_scripts_written_for_smdebug_import_every_alias() -> None:
    lines = ["from smdebug.core import access_layer", "access_layer.file.get_temp_path, access_layer.utils.is_s3"]
    for alias in ALL_ALIASES:
        parent, _, name = f"smdebug.core.{alias}".rpartition(".")
        lines += [f"import {parent}.{name}", f"{parent}.{name}.__doc__", f"from {parent} import {name}"]
    command = [sys.executable, "-W", "error", "-c", "\n".join(lines)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=400)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_library_imports_no_alias() -> None:
    alias = re.compile(r"(from|import) smdebug\.core\b")
    inside = [path for path in FOLDER.parent.rglob("*.py") if FOLDER not in path.parents]
    assert [path for path in inside if alias.search(path.read_text(encoding="utf-8"))] == []
