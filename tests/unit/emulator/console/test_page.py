from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from emulator.api.application import build_pages
from emulator.console.page import build_console_pages
from emulator.gateway.gateway import is_from_a_browser, parse_request

if TYPE_CHECKING:
    from pathlib import Path

    from flask.testing import FlaskClient

HTML = {"Accept": "text/html,*/*"}


@pytest.fixture
def client(tmp_path: Path) -> FlaskClient:
    (tmp_path / "names.json").write_text(json.dumps({"script": "main-1.js", "style": "main-1.css"}))
    (tmp_path / "main-1.js").write_text("1")
    return build_pages(dict, [build_console_pages(tmp_path)]).test_client()


def test_the_page_loads_nothing_from_elsewhere(client: FlaskClient) -> None:
    answer = client.get("/console", headers=HTML)
    policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy
    assert "//" not in answer.text
    with client.get("/_emulator/console/main-1.js") as script:
        assert script.get_data() == b"1"
    assert client.get("/_emulator/console/..%2fnames.json").status_code == 404


def test_one_that_was_not_built_says_how_it_is(tmp_path: Path) -> None:
    answer = build_pages(dict, [build_console_pages(tmp_path / "none")]).test_client().get("/console")
    assert (answer.status_code, answer.mimetype) == (503, "text/plain")
    assert "make console" in answer.text


def test_the_front_page_leads_a_browser_to_it_and_tells_others_where_it_is(client: FlaskClient) -> None:
    assert client.get("/", headers=HTML).headers["Location"] == "/console"
    assert "/console" in client.get("/").text


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"PATH_INFO": "/console", "HTTP_ACCEPT": "text/html"}, True),
        ({"PATH_INFO": "/console/", "HTTP_ACCEPT": "text/html"}, True),
        # A bucket may have this name.
        ({"PATH_INFO": "/console"}, False),
        ({"PATH_INFO": "/console/key", "HTTP_ACCEPT": "text/html"}, False),
        ({"PATH_INFO": "/console", "HTTP_ACCEPT": "text/html", "HTTP_AUTHORIZATION": "AWS4"}, False),
        ({"PATH_INFO": "/console", "HTTP_ACCEPT": "text/html", "QUERY_STRING": "list-type=2"}, False),
        ({"PATH_INFO": "/console", "HTTP_ACCEPT": "text/html", "REQUEST_METHOD": "PUT"}, False),
        ({"PATH_INFO": "/console", "HTTP_ACCEPT": "text/html", "HTTP_HOST": "b.s3.localhost:1"}, False),
    ],
)
def test_which_clients_get_the_page(environ: dict[str, str], expected: bool) -> None:
    request = parse_request({"REQUEST_METHOD": "GET", "HTTP_HOST": "127.0.0.1:4580", **environ})
    assert is_from_a_browser(request) is expected
