"""What `make audit` says of an index that cannot tell of weaknesses, asked over HTTP."""

from __future__ import annotations

import json
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

WEAKNESSES = {"vulnerabilities": [{"id": "PYSEC-2019-133"}]}


class Index(ThreadingHTTPServer):
    """An index that has one answer.

    Attributes:
        status: of its answer.
        body: of its answer.
        asked: the paths that were asked for.
    """

    status, body = 200, ""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.asked: list[str] = []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/pypi"


class Answer(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        assert isinstance(self.server, Index)
        self.server.asked.append(self.path)
        self.send_response(self.server.status)
        self.end_headers()
        self.wfile.write(self.server.body.encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name in http.server
        """Say nothing on the test's output."""


@pytest.fixture
def index() -> Iterator[Index]:
    with Index() as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def check(address: str) -> tuple[int, str]:
    """Run the check as the Makefile does; its exit code, and all that it said."""
    command = [sys.executable, "-m", "container_runtime.images.weakness_feed", address]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    return done.returncode, done.stdout + done.stderr


def test_an_index_that_tells_of_weaknesses_is_asked(index: Index) -> None:
    index.body = json.dumps(WEAKNESSES)
    assert check(index.address) == (0, "")
    assert index.asked == ["/pypi/urllib3/1.24.1/json"]


@pytest.mark.parametrize(
    ("status", "body", "why"),
    [
        pytest.param(404, "", "the answer was 404", id="no-such-api"),
        pytest.param(200, "<html>", "no page of the JSON API", id="a-web-page"),
        pytest.param(200, "[]", "no page of the JSON API", id="other-json"),
        pytest.param(200, '{"info": {}}', "names no weakness", id="none-told"),
        pytest.param(200, '{"vulnerabilities": []}', "names no weakness", id="an-empty-list"),
    ],
)
def test_an_index_that_cannot_tell_ends_the_audit_in_one_sentence(
    index: Index, status: int, body: str, why: str
) -> None:
    index.status, index.body = status, body
    code, said = check(index.address)
    assert code == 1
    assert said.startswith("Nothing was audited: ")
    assert why in said
    assert f"{index.address}/urllib3/1.24.1/json" in said
    assert said.count("\n") == 1


def test_an_index_that_does_not_answer_ends_the_audit_too(index: Index) -> None:
    closed = index.address
    index.shutdown()
    index.server_close()
    code, said = check(closed)
    assert code == 1
    assert "Connection refused" in said
    assert said.count("\n") == 1
