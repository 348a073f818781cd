"""Tests of docs/glossary.md and of modules' first lines."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = (
    "benchmarks",
    "container_runtime",
    "docs_site",
    "emulator",
    "examples",
    "rules_images",
    "sdk_compat",
    "smdebug",
    "tests",
)
MODULES = sorted(
    path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py") if "node_modules" not in path.parts
)
QUESTIONS = ("What", "How", "Which", "Where", "Who", "Whose", "Whether")
LONGEST = 80


def read_retired_words() -> list[str]:
    table = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8").partition("## Retired words")[2]
    rows = [line.strip("|").split("|")[0].strip() for line in table.splitlines() if line.startswith("| ")]
    return rows[1:]


RETIRED = [word.split() for word in read_retired_words()]


@cache
def split_words(name: str) -> list[str]:
    """Split a name of any case into its words, in lower case and without a plural's s."""
    words = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)
    return [word.lower().removesuffix("s") for word in words]


@cache
def find_retired(name: str) -> list[str]:
    words = split_words(name)
    return [
        " ".join(retired)
        for retired in RETIRED
        if any(words[start : start + len(retired)] == retired for start in range(len(words)))
    ]


# What defines a class or a function; also in a script that is a text of the module.
DEFINITION = re.compile(r"^ *(?:class|(?:async +)?def) +(\w+)", re.MULTILINE)


@cache
def read_module(path: Path) -> tuple[list[str], str]:
    """Return a module's names, and its first line.

    The names are its own, and those of its classes and functions; names that frameworks demand are not ours. Only what
    may be a definition with a retired word is worth parsing the module, which takes twenty times as long as reading it.
    """
    text = path.read_text(encoding="utf-8")
    defined = DEFINITION.findall(text)
    if any(map(find_retired, defined)):
        kinds = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        defined = [node.name for node in ast.walk(ast.parse(text)) if isinstance(node, kinds)]
    # All lines before the docstring are comments; a docstring without its end is one of several lines.
    start = re.match(r'(?:#.*\n|\n)*r?"""(.*)', text)
    line = start[1].partition('"""')[0].strip() if start else ""
    return [path.stem, *path.parent.relative_to(ROOT).parts, *defined], line


def test_retired_words_are_read() -> None:
    assert ["room"] in RETIRED
    assert ["take", "up"] in RETIRED
    assert find_retired("AccountRooms") == ["room"]
    assert find_retired("_take_up_files") == ["take up"]
    assert find_retired("broom") == []


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_retired_word_is_in_a_name_or_a_first_line(folder: str) -> None:
    found = []
    for path in (path for path in MODULES if path.is_relative_to(ROOT / folder)):
        relative = path.relative_to(ROOT).as_posix()
        names, line = read_module(path)
        found += [f"{relative}: {name}: {words}" for name in names if (words := find_retired(name))]
        found += [f"{relative}: {line}: {words}" for words in find_retired(line)]
    assert found == []


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_modules_first_line_names_its_subject(folder: str) -> None:
    found = []
    for path in (path for path in MODULES if path.is_relative_to(ROOT / folder)):
        _, line = read_module(path)
        if len(line) > LONGEST or line.split(" ")[0] in QUESTIONS:
            found.append(f"{path.relative_to(ROOT).as_posix()}: {line}")
    assert found == []
