"""Tests of docs/rules-study.md: two of its trainings, judged again."""

import re
from pathlib import Path

import pytest

from examples.rule_study.__main__ import study
from examples.rule_study.judging import FORMULAS
from examples.rule_study.trainings import HEALTHY, SICK
from smdebug.rules.builtin import find_built_in_rule, list_names

pytestmark = pytest.mark.slow

PAGE = (Path(__file__).parents[4] / "docs/rules-study.md").read_text(encoding="utf-8")
TABLES = re.findall(r"\| \| ([\w |]+) \|\n\|[-|]+\|\n((?:\| .*\n)+)", PAGE)


def read_column(heading: str, name: str) -> dict[str, str]:
    """The cells of a training under a heading, by rule."""
    part = PAGE[PAGE.index(f"## {heading}") :]
    for names, lines in re.findall(r"\| \| ([\w |]+) \|\n\|[-|]+\|\n((?:\| .*\n)+)", part):
        if name in names.split(" | "):
            at = names.split(" | ").index(name) + 1
            rows = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in lines.splitlines()]
            return {row[0]: row[at] for row in rows}
    raise LookupError(name)


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["iris", "zeros", "jungle"])
def test_trainings_are_judged_as_the_page_says(name: str, tmp_path: Path) -> None:
    for heading, found in zip(("With the defaults", "With chosen parameters"), study(name, tmp_path), strict=True):
        cells = read_column(heading, name)
        fired = {rule for rule, judgement in found.items() if judgement.finding is not None}
        assert fired == {rule for rule, cell in cells.items() if cell[:1].isdigit()}, heading
        assert all(found[rule].agrees for rule in fired)
        assert {rule for rule, cell in cells.items() if cell == "."} == {
            rule for rule, judgement in found.items() if judgement.finding is None and judgement.has_tensors
        }


def test_the_page_has_every_rule_and_training() -> None:
    assert len(HEALTHY) == len(SICK) == 10
    assert [names.split(" | ") for names, _ in TABLES] == [list(HEALTHY), list(SICK)] * 2
    assert all(re.findall(r"^\| (\w+)", rows, re.MULTILINE) == list_names() for _, rows in TABLES)
    assert "(?)" not in PAGE.partition("## With the defaults")[2]
    can_fire = {name for name in list_names() if find_built_in_rule(name).can_fire}
    assert set(FORMULAS) == can_fire - {"NLPSequenceRatio", "StalledTrainingRule"}
