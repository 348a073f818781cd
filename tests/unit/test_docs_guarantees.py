"""Tests of docs/guarantees.md: each promise names an existing test."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "guarantees.md").read_text(encoding="utf-8")
PROMISES = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.splitlines()
    if line.startswith("| ") and not line.startswith("| promise")
]


def test_there_are_promises() -> None:
    assert len(PROMISES) > 25


@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise[0][:60])
def test_the_test_of_a_promise_is_there(promise: list[str]) -> None:
    said, test, _figure = promise
    assert said.endswith(".")
    found = re.fullmatch(r"`((?:tests|container_runtime/contract)/[\w/]+\.py)::(test_\w+)`", test)
    assert found is not None, test
    module = ast.parse((ROOT / found[1]).read_text(encoding="utf-8"))
    assert found[2] in {node.name for node in module.body if isinstance(node, ast.FunctionDef)}
