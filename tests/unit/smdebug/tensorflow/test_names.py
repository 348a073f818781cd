"""Tests of the public names and hooks of modules that import TensorFlow."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.smdebug.core.test_path_objects import KINDS, check_hook
from tests.unit.smdebug.test_public_names import ALIASES, NAMES, OF_TENSORFLOW, check_all, check_names
from tests.unit.smdebug.test_upstream_names import NAMES as UPSTREAM_NAMES
from tests.unit.smdebug.test_upstream_names import check_listed


@pytest.mark.parametrize("module", [module for module in NAMES if module.startswith(OF_TENSORFLOW)])
def test_names_can_be_imported_and_say_what_they_are(module: str) -> None:
    check_names(module)
    if module in ALIASES:
        check_all(module)


@pytest.mark.parametrize("module", [module for module in sorted(UPSTREAM_NAMES) if module.startswith(OF_TENSORFLOW)])
def test_names_are_there_refused_or_absent_as_upstream_has_them(module: str) -> None:
    check_listed(module)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["tensorflow.KerasHook", "tensorflow.SessionHook"])
def test_hooks_take_path_objects(name: str, kind: Callable[[Path], os.PathLike[str]], tmp_path: Path) -> None:
    check_hook(name, kind, tmp_path)
