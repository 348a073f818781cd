"""Tests of the form of pages in Markdown, which readers other than GitHub need."""

from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]
PAGES = [
    *CHECKOUT.glob("*.md"),
    *(path for folder in ("docs", "examples") for path in (CHECKOUT / folder).rglob("*.md")),
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(CHECKOUT)))
def test_blank_lines_surround_a_block_of_code(page: Path) -> None:
    lines = ["", *page.read_text(encoding="utf-8").splitlines(), ""]
    fences = [at for at, line in enumerate(lines) if line.startswith("```")]
    assert [lines[at] for at in fences[::2] if lines[at - 1]] == []
    assert [lines[at + 1] for at in fences[1::2] if lines[at + 1]] == []


def test_the_readme_is_read_at_a_glance() -> None:
    assert len((CHECKOUT / "README.md").read_text(encoding="utf-8").splitlines()) <= 90
