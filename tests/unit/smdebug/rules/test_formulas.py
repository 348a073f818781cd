"""Tests that the formulas of rules have examples.

`tests/unit/test_doctests.py` runs them.
"""

import doctest
from importlib import import_module
from pathlib import Path

import pytest

import smdebug.rules.builtin as built_in

RULES = [path.stem for path in sorted(Path(str(built_in.__file__)).parent.glob("[a-z]*.py"))]
# A formula of one comparison, which `Limit` makes, or one of `measuring` alone; a report judges nothing.
WITHOUT_OWN = {
    "create_xgboost_report",
    "dead_relu",
    "overtraining",
    "saturated_activation",
    "stalled_training_rule",
    "tensor_variance",
    "vanishing_gradient",
}


@pytest.mark.parametrize("name", RULES)
def test_each_rules_formula_has_an_example(name: str) -> None:
    found = doctest.DocTestFinder().find(import_module(f"{built_in.__name__}.{name}"))
    assert any(each.examples for each in found) is (name not in WITHOUT_OWN)
