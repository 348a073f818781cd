"""Tests of the examples in docstrings."""

import doctest
from importlib import import_module
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]
MODULES = [
    ".".join(path.relative_to(CHECKOUT).with_suffix("").parts)
    for package in ("container_runtime", "emulator", "sdk_compat", "smdebug")
    for path in sorted((CHECKOUT / package).rglob("*.py"))
    if ">>> " in path.read_text(encoding="utf-8")
]


@pytest.mark.slow
@pytest.mark.parametrize("name", MODULES)
def test_examples_are_true(name: str) -> None:
    tried = doctest.testmod(import_module(name))
    assert tried.attempted
    assert not tried.failed, "what differs stands in the captured output"
