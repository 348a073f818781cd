"""Tests of docs/architecture.md and the READMEs: all named files exist.

Folders and definitions are checked as well.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "architecture.md"
# Folders of the checkout; other paths in back quotes are those of containers, S3 or the user.
FOLDERS = (
    "benchmarks",
    "container_runtime",
    "docs",
    "docs_site",
    "emulator",
    "examples",
    "release",
    "rules_images",
    "sdk_compat",
    "smdebug",
    "tests",
)
READMES = ["README.md", *(f"{folder}/README.md" for folder in FOLDERS if (ROOT / folder / "README.md").exists())]


def find_quoted(text: str) -> list[str]:
    return re.findall(r"`([^`\s]+)`", text)


def list_definitions(path: Path) -> set[str]:
    """Names of a module's functions and classes, and of methods behind their class."""
    names = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        if isinstance(node, ast.ClassDef):
            names |= {f"{node.name}.{inner.name}" for inner in node.body if isinstance(inner, ast.FunctionDef)}
    return names


NAMED = [quoted for quoted in find_quoted(PAGE.read_text(encoding="utf-8")) if "/" in quoted]


def test_the_page_names_many_files() -> None:
    assert len(set(NAMED)) > 50


@pytest.mark.parametrize("named", sorted(set(NAMED)))
def test_what_the_page_names_is_there(named: str) -> None:
    path, _, name = named.partition("::")
    assert (ROOT / path).exists()
    if name:
        assert name in list_definitions(ROOT / path)


@pytest.mark.parametrize("readme", READMES)
def test_paths_of_a_readme_are_there(readme: str) -> None:
    folder = (ROOT / readme).parent
    for quoted in find_quoted((ROOT / readme).read_text(encoding="utf-8")):
        first = quoted.partition("/")[0]
        if first and "/" in quoted and "<" not in quoted and "*" not in quoted and "{" not in quoted:
            inside = (folder / first).exists() or ((ROOT / first).exists() and first in FOLDERS)
            assert not inside or (folder / quoted).exists() or (ROOT / quoted).exists(), quoted
