"""Every test that docs/frameworks.md names is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]
PAGE = (CHECKOUT / "docs/frameworks.md").read_text(encoding="utf-8")
FOLDERS = {"PyTorch": "pytorch", "TensorFlow and Keras": "tensorflow", "XGBoost": "xgboost", "MXNet": "mxnet"}
NAME = re.compile(r"`((?:[\w/]+/)?(?:test|check)_\w+\.py)`")


def find_named() -> list[Path]:
    named = []
    for section in PAGE.split("\n## "):
        folder = FOLDERS.get(section.partition("\n")[0])
        for name in NAME.findall(section):
            own = name.startswith("tests/") or folder is None
            kinds = [CHECKOUT] if own else [CHECKOUT / f"tests/{kind}/smdebug/{folder}" for kind in ("unit", "room")]
            named.append(next((kind / name for kind in kinds if (kind / name).exists()), kinds[0] / name))
    return sorted(set(named))


@pytest.mark.parametrize("path", find_named(), ids=lambda path: path.name)
def test_what_is_named_is_there(path: Path) -> None:
    assert "def test_" in path.read_text(encoding="utf-8")


def test_every_suite_of_a_framework_is_named() -> None:
    for folder in FOLDERS.values():
        assert sum(f"/smdebug/{folder}/" in str(path) for path in find_named()) >= 3


@pytest.mark.parametrize("link", re.findall(r"\]\(([\w/.-]+)\)", PAGE))
def test_links_lead_somewhere(link: str) -> None:
    assert (CHECKOUT / "docs" / link).is_file()
