"""Tests of the docs site: valid links, search, and no network requests.

By day unit/docs_site has its links and the pages that it makes.
"""

import json
import os
import re
import subprocess
import sys
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import version
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from playwright.sync_api import expect

from release.documentation import write_versions
from tests.chromium import opened_chromium, visit

pytestmark = pytest.mark.slow

VERSION = version("smdebug-emulator")
CHECKOUT = Path(__file__).parents[3]
# What a page loads by itself; links are followed by people.
LOADED = {"script": "src", "link": "href", "img": "src", "iframe": "src", "source": "src", "object": "data"}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built as `make docs` does, which is strict: a broken link ends it. It lies where a release puts it."""
    folder = tmp_path_factory.mktemp("sites") / VERSION
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


@pytest.mark.nightly
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


@pytest.mark.nightly
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


class Quiet(SimpleHTTPRequestHandler):
    """Of what is not there it says nothing: a page that was left does not wait for it."""

    def log_message(self, *_: Any) -> None:
        pass

    def send_error(self, code: int, *_: Any) -> None:
        self.send_response(code)
        self.send_header("Content-Length", "0")
        self.end_headers()


@pytest.mark.nightly
def test_the_header_leads_to_other_versions(site: Path) -> None:
    other = site.parent / "0.0.9"
    other.mkdir()
    (other / "index.html").write_text("<title>An earlier version</title>")
    write_versions(site.parent)
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site.parent)))
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        with opened_chromium() as browser:
            page = browser.new_page()
            visit(page, f"http://127.0.0.1:{server.server_port}/")
            expect(page.locator(".md-version__link")).to_have_text([VERSION, "0.0.9"], timeout=60_000)
            page.locator(".md-version__current").focus()
            page.locator(".md-version__link", has_text="0.0.9").press("Enter")
            expect(page).to_have_title("An earlier version", timeout=60_000)
    finally:
        server.shutdown()
        server.server_close()


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
