"""Tests of the links of docs pages to files and headings."""

import re
from functools import cache
from pathlib import Path

import pytest
from markdown.extensions.toc import slugify  # type: ignore[import-untyped]

from docs_site.hooks import GENERATED

CHECKOUT = Path(__file__).parents[3]
DOCS = CHECKOUT / "docs"
MADE = {DOCS / name for name in (*GENERATED, "changelog.md")}
CODE = re.compile(r"^( *)```.*?^\1```|`[^`\n]+`", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s#:]*)(?:#([^)\s]+))?\)")
PAGES = sorted(DOCS.rglob("*.md"))


@cache
def list_anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as the site makes them, and those that it names itself."""
    text = re.sub(r"^( *)```.*?^\1```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.*)", text, re.MULTILINE)
    plain = [re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading) for heading in headings]
    return {slugify(heading, "-") for heading in plain} | set(re.findall(r'(?:id="|\{: ?#)([\w-]+)', text))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_each_link_leads_to_a_file_and_a_heading_that_there_are(page: Path) -> None:
    for path, anchor in LINK.findall(CODE.sub("", page.read_text(encoding="utf-8"))):
        target = (page.parent / path).resolve() if path else page
        assert target in MADE or target.exists(), path
        if anchor and target.suffix == ".md" and target not in MADE:
            assert anchor in list_anchors(target), f"{path}#{anchor}"


def test_links_are_found() -> None:
    found = LINK.findall(CODE.sub("", "[a](b.md) `[c](d.md)` [e](f.md#g-h) [i](#j) [k](https://example.com)"))
    assert found == [("b.md", ""), ("f.md", "g-h"), ("", "j")]
