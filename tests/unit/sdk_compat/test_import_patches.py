import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from sdk_compat.startup.import_patches import patch_modules


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a module that is not imported yet; nothing of it is left after the test."""
    (tmp_path / "patched_in_a_test.py").write_text("applied = []\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    monkeypatch.delitem(sys.modules, "patched_in_a_test", raising=False)
    return "patched_in_a_test"


def first(module: Any) -> None:
    module.applied.append("first")


def second(module: Any) -> None:
    module.applied.append("second")


@pytest.mark.parametrize("is_imported", [False, True])
def test_a_module_gets_all_its_patches(module: str, is_imported: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if is_imported:
        import_module(module)
    patch_modules(((module, "no_such_module"), first), ((module,), second))
    assert import_module(module).applied == ["first", "second"]
    monkeypatch.delitem(sys.modules, module)
