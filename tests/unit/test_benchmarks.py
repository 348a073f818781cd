"""Tests of the list of benchmarks."""

import ast
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
FOUND = [
    path
    for path in sorted(BENCHMARKS.rglob("*.py"))
    if path.parent.name != "shared"
    and path.name not in ("__init__.py", "__main__.py")
    and not path.name.startswith("_")
]


@pytest.mark.parametrize("path", FOUND, ids=lambda path: path.stem)
def test_a_benchmark_measures_under_a_name_of_its_own(path: Path) -> None:
    functions = {
        each.name for each in ast.parse(path.read_text(encoding="utf-8")).body if isinstance(each, ast.FunctionDef)
    }
    assert "measure" in functions
    assert [each for each in FOUND if each.stem == path.stem] == [path]
