"""Tests of the table of coverage by package."""

import pytest

from tests.covered import tabulate


def summarize(lines: int, statements: int, taken: int, branches: int) -> dict[str, dict[str, int]]:
    names = ("covered_lines", "num_statements", "covered_branches", "num_branches")
    return {"summary": dict(zip(names, (lines, statements, taken, branches), strict=True))}


def test_packages_are_two_levels_deep() -> None:
    table = tabulate(
        {
            "smdebug/rules/builtin/tree.py": summarize(3, 4, 1, 2),
            "smdebug/rules/rule.py": summarize(4, 4, 2, 2),
            "smdebug/logger.py": summarize(1, 2, 0, 0),
        }
    )
    assert [line.split() for line in table.splitlines()] == [
        ["package", "lines", "branches"],
        ["all", "80.0%", "75.0%"],
        ["smdebug", "50.0%", "-"],
        ["smdebug/rules", "87.5%", "75.0%"],
    ]


def test_a_run_without_measures_is_reported() -> None:
    with pytest.raises(ValueError, match="Nothing was covered: run `make coverage`"):
        tabulate({})
