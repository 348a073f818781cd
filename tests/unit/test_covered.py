"""Tests of the measuring of coverage, and of its table by package."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.covered import BACK_ENDS, CHECKOUT, combine, measuring, tabulate


def summarize(lines: int, statements: int, taken: int, branches: int) -> dict[str, dict[str, int]]:
    names = ("covered_lines", "num_statements", "covered_branches", "num_branches")
    return {"summary": dict(zip(names, (lines, statements, taken, branches), strict=True))}


# Each ends in another way; none has an environment variable that says what is measured, or any other start file.
@pytest.mark.parametrize(
    "program",
    [
        pytest.param("from smdebug import exceptions", marks=pytest.mark.nightly),
        pytest.param("import os; from smdebug import exceptions; os._exit(0)", marks=pytest.mark.nightly),
        pytest.param(
            "import os; from smdebug import exceptions; os.execve('/bin/true', ['true'], {})", marks=pytest.mark.nightly
        ),
        "import os\nif os.fork():\n    os.wait()\nelse:\n    from smdebug import exceptions\n    os._exit(0)",
    ],
)
def test_every_interpreter_is_measured(program: str, tmp_path: Path) -> None:
    packages = tmp_path / "packages"
    packages.mkdir()
    start = f"import site, sys; site.addsitedir({str(packages)!r}); sys.path.insert(0, {str(CHECKOUT)!r})\n"
    with measuring(tmp_path / "measures", [packages]):
        command = [sys.executable, "-I", "-S", "-c", start + program]
        done = subprocess.run(command, env={}, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=400)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert list(packages.iterdir()) == []
    measured = combine(tmp_path / "measures").get_data()
    assert measured.lines(str(CHECKOUT / "smdebug" / "exceptions.py"))


def test_packages_are_two_levels_deep() -> None:
    table = tabulate(
        {
            "smdebug/rules/builtin/tree.py": summarize(3, 4, 1, 2),
            "smdebug/rules/rule.py": summarize(4, 4, 2, 2),
            "smdebug/logger.py": summarize(1, 2, 0, 0),
            "container_runtime/docker/images/image_build.py": summarize(0, 10, 0, 4),
        }
    )
    assert [line.rsplit(maxsplit=2) for line in table.splitlines()] == [
        ["package", "lines", "branches"],
        ["all", "40.0%", "37.5%"],
        ["all but back ends", "80.0%", "75.0%"],
        ["container_runtime/docker", "0.0%", "0.0%"],
        ["smdebug", "50.0%", "-"],
        ["smdebug/rules", "87.5%", "75.0%"],
    ]


def test_back_ends_are_packages() -> None:
    assert [name for name in BACK_ENDS if not (CHECKOUT / name).is_dir()] == []


def test_a_run_without_measures_is_reported() -> None:
    with pytest.raises(ValueError, match="Nothing was covered: run `make coverage`"):
        tabulate({})
