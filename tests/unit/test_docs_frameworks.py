"""Tests of docs/frameworks.md: every test that it names exists."""

import ast
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
            tiers = ("unit", "integration")
            kinds = [CHECKOUT] if own else [CHECKOUT / f"tests/{tier}/smdebug/{folder}" for tier in tiers]
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


def find_tables_of_generations() -> list[list[str]]:
    """Lines of the tables that have a column for each generation, cell by cell."""
    found: list[list[str]] = []
    is_inside = False
    for line in PAGE.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not line.startswith("|"):
            is_inside = False
        elif is_inside and not line.startswith("|---"):
            found.append(cells)
        elif cells[-1] == "test":
            is_inside = True
    return found


GENERATIONS = find_tables_of_generations()


def test_each_framework_has_its_generations() -> None:
    assert len(GENERATIONS) >= 18
    assert {len(line) for line in GENERATIONS} == {5, 9}


@pytest.mark.parametrize("line", GENERATIONS, ids=lambda line: line[0][:50])
def test_the_tests_of_a_line_are_there(line: list[str]) -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", line[-1])
    assert named
    assert line[-1].count("`") == 2 * len(named)
    for path, name in named:
        module = ast.parse((CHECKOUT / path).read_text(encoding="utf-8"))
        assert name in {node.name for node in module.body if isinstance(node, ast.FunctionDef)}, (path, name)
