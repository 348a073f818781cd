"""Tests of the docs site: valid links, search, and no network requests."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[3]
# What a page loads by itself; links are followed by people.
LOADED = {"script": "src", "link": "href", "img": "src", "iframe": "src", "source": "src", "object": "data"}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built as `make docs` does, which is strict: a broken link ends it."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-W", "ignore", "-m", "mkdocs", "--quiet", "build", "--site-dir", str(folder)]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=CHECKOUT, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
    return folder


class Loads(HTMLParser):
    """Addresses of what a page loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [value for name, value in attrs if LOADED.get(tag) == name and value]


def test_nothing_is_loaded_from_a_network(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 40
    for page in pages:
        loaded = Loads(page.read_text(encoding="utf-8")).found
        assert loaded
        for address in loaded:
            assert not re.match(r"([a-z]+:)?//", address), (page, address)
            if page.name != "404.html":
                assert (page.parent / address.partition("?")[0].partition("#")[0]).exists(), (page, address)
    for sheet in site.rglob("*.css"):
        assert not re.search(r"(url\(|@import )['\"]?(https?:)?//", sheet.read_text(encoding="utf-8")), sheet


def test_every_page_is_found(site: Path) -> None:
    found = json.loads((site / "search/search_index.json").read_text(encoding="utf-8"))["docs"]
    pages = {entry["location"].partition("#")[0] for entry in found}
    written = {
        str(path.relative_to(CHECKOUT / "docs").with_suffix(".html")).replace("README", "index")
        for path in (CHECKOUT / "docs").rglob("*.md")
    }
    generated = {"changelog.html", "examples.html", "troubleshooting.html"}
    generated |= {"reference/commands.html", "reference/environment.html"}
    assert written | generated <= pages
    # Opened from a disk, the index is a script, and the search runs where no worker is started.
    assert (site / "search/search_index.js").exists()
    assert "iframe-worker" in (site / "index.html").read_text(encoding="utf-8")


def test_a_link_to_nowhere_ends_the_build(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/index.md").write_text("# Home\n\n[nowhere](nowhere.md)\n")
    configuration = (CHECKOUT / "mkdocs.yml").read_text(encoding="utf-8")
    kept = re.sub(r"^hooks:.*\n|^plugins:\n(  .*\n)*|^theme:\n(  .*\n)*", "", configuration, flags=re.MULTILINE)
    (tmp_path / "mkdocs.yml").write_text(f"{kept}theme: mkdocs\nplugins: []\n")
    command = [sys.executable, "-W", "ignore", "-m", "mkdocs", "build"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "nowhere.md" in done.stderr
