"""The formulas of the rules, and the examples that stand with them."""

from __future__ import annotations

import doctest
from importlib import import_module
from pathlib import Path

import pytest

import smdebug.rules.builtin as built_in
from smdebug.rules import measuring

FOLDERS = {folder.__name__: Path(str(folder.__file__)).parent for folder in (built_in, measuring)}
MODULES = [f"{name}.{path.stem}" for name, folder in FOLDERS.items() for path in sorted(folder.glob("[a-z]*.py"))]
# A formula of one comparison, which `Limit` makes, or one of `measuring` alone.
WITHOUT_OWN = {"overtraining", "stalled_training_rule", "tensor_variance", "vanishing_gradient"}


@pytest.mark.parametrize("name", [*MODULES, "smdebug.rules.watched_quantity"])
def test_examples_are_true(name: str) -> None:
    tried = doctest.testmod(import_module(name))
    assert not tried.failed
    module = name.rpartition(".")[2]
    if name.startswith(built_in.__name__):
        assert bool(tried.attempted) is (module not in WITHOUT_OWN), "each rule's formula has an example"
