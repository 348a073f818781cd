"""Tests of docs/clients.md: every test that it names exists."""

import re
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]
PAGE = (CHECKOUT / "docs/clients.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`([\w/]*test_\w+\.py)`", PAGE))))
def test_what_is_named_is_there(name: str) -> None:
    path = CHECKOUT / (name if name.startswith("tests/") else f"tests/clients/{name}")
    assert "def test_" in path.read_text(encoding="utf-8")
