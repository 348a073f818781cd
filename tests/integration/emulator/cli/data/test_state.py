"""Tests of ``state export`` with an emulator that ends while it answers."""

import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from click.testing import CliRunner

from emulator.cli.commands import main
from emulator.state.folder import RunningEmulator


class _Ending(BaseHTTPRequestHandler):
    """Announces more than it sends, as an emulator does that is killed."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "1000")
        self.end_headers()
        self.wfile.write(b"begun")

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def ending() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), _Ending) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_an_export_that_is_cut_off_leaves_no_file(ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "state.tar"
    found = RunningEmulator(os.getpid(), ending, "us-east-1")
    monkeypatch.setattr("emulator.cli.data.state.find_running", lambda _: found)
    done = CliRunner().invoke(main, ["state", "export", str(file)], catch_exceptions=False)
    assert done.exit_code == 1
    assert f"The emulator stopped answering before {file} was complete" in done.output
    assert list(tmp_path.iterdir()) == []
