"""Tests of paths on pages, decisions, and sizes of classes, files and folders.

All files, folders and definitions that the pages name exist.
"""

import ast
import functools
import re
from collections import Counter
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


MOST_ATTRIBUTES, MOST_METHODS = 15, 25


@functools.cache
def list_classes() -> dict[str, list[tuple[Path, ast.ClassDef]]]:
    """List the classes of the packages that a module has at its top, by name."""
    classes: dict[str, list[tuple[Path, ast.ClassDef]]] = {}
    for package in ("container_runtime", "emulator"):
        for path in (ROOT / package).rglob("*.py"):
            for node in ast.parse(path.read_text(encoding="utf-8")).body:
                if isinstance(node, ast.ClassDef):
                    classes.setdefault(node.name, []).append((path, node))
    return classes


@functools.cache
def list_attributes(node: ast.ClassDef) -> set[str]:
    """List the attributes of a class and of its bases: annotated ones, and those that methods assign."""
    found = {
        each.target.id for each in node.body if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
    }
    for each in ast.walk(node):
        if isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store):
            found |= {each.attr} if isinstance(each.value, ast.Name) and each.value.id == "self" else set()
    for base in node.bases:
        name = ast.unparse(base).partition("[")[0].rpartition(".")[2]
        for _, parent in list_classes().get(name, []) if name != node.name else []:
            found |= list_attributes(parent)
    return found


def list_large_classes(*folders: str) -> list[str]:
    """List the classes in folders that have too many attributes or methods."""
    found = []
    for path, node in (each for same_name in list_classes().values() for each in same_name):
        if any(path.is_relative_to(ROOT / folder) for folder in folders):
            methods = sum(isinstance(each, ast.FunctionDef) for each in node.body)
            if methods > MOST_METHODS or len(list_attributes(node)) > MOST_ATTRIBUTES:
                found.append(f"{path.relative_to(ROOT)}::{node.name}")
    return sorted(found)


def test_no_class_of_jobs_or_of_carried_and_local_containers_is_large() -> None:
    assert list_large_classes("emulator/jobs", "container_runtime/process", "container_runtime/swarm") == []


DECISIONS = ROOT / "docs" / "decisions"
STATUS = re.compile(r"Status: accepted · \d{4}-\d\d-\d\d")


@pytest.mark.parametrize("decision", sorted(path.name for path in DECISIONS.glob("0*.md")))
def test_a_decision_has_status_and_date_and_is_in_the_index_by_its_title(decision: str) -> None:
    title, _, status = (DECISIONS / decision).read_text(encoding="utf-8").splitlines()[:3]
    assert STATUS.match(status), f"{decision}: the third line is its status and date"
    index = (DECISIONS / "README.md").read_text(encoding="utf-8")
    assert f"- [{decision[:4]}]({decision}) {title.removeprefix('# ')}\n" in index


MOST_MODULES = 18
# There, a rule is a file.
UNBOUNDED = {"smdebug/rules/builtin"}


def test_no_folder_of_the_packages_holds_too_many_modules() -> None:
    counts = Counter(
        path.parent.relative_to(ROOT).as_posix()
        for package in ("benchmarks", "container_runtime", "emulator", "sdk_compat", "smdebug")
        for path in (ROOT / package).rglob("*.py")
        if path.name != "__init__.py" and "node_modules" not in path.parts
    )
    assert {folder for folder, count in counts.items() if count > MOST_MODULES} - UNBOUNDED == set()


MOST_LINES = 450
LONG = {"emulator/console/web/src/api_types.ts"}  # generated


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_file_is_long(folder: str) -> None:
    found = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / folder).rglob("*.[pt][ys]")
        if "node_modules" not in path.parts and len(path.read_text(encoding="utf-8").splitlines()) > MOST_LINES
    }
    assert found <= LONG
