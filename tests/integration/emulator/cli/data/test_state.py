"""Tests of ``state`` with an emulator that ends early or imports twice."""

import json
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from click.testing import CliRunner

from emulator import VERSION
from emulator.cli.commands import main
from emulator.state.folder import RunningEmulator

Run = Callable[..., tuple[int, str]]


@contextmanager
def serving(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    """Serve with a handler; yield the URL."""
    with HTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run ``state`` with the emulator at a URL; return its exit code and output."""

    def run(url: str, *arguments: str) -> tuple[int, str]:
        found = RunningEmulator(os.getpid(), url, "us-east-1")
        monkeypatch.setattr("emulator.cli.data.state.find_running", lambda _: found)
        done = CliRunner().invoke(main, ["state", *arguments], catch_exceptions=False)
        return done.exit_code, done.output

    return run


class _Ending(BaseHTTPRequestHandler):
    """Announces more than it sends, as an emulator does that is killed."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "1000")
        self.end_headers()
        self.wfile.write(b"begun")

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def test_an_export_that_is_cut_off_leaves_no_file(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "state.tar"
    with serving(_Ending) as url:
        code, said = run(url, "export", str(file))
    assert code == 1
    assert f"The emulator stopped answering before {file} was complete" in said
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("last", ["mine", "other"])
def test_an_import_ends_though_another_follows_it_at_once(run: Run, tmp_path: Path, last: str) -> None:
    """As where the emulator restarts for the other one before the command looks again."""
    file = tmp_path / "state.tar"
    file.write_bytes(b"an archive")
    posted: list[bytes] = []
    last_imports = ["before", "before", last]

    class Restarting(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            posted.append(self.rfile.read(int(self.headers["Content-Length"])))
            self._answer({"import": "mine", "previousImport": "before"})

        def do_GET(self) -> None:
            self._answer({"status": "running", "version": VERSION, "lastImport": last_imports.pop(0)})

        def _answer(self, content: dict[str, str]) -> None:
            body = json.dumps(content).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with serving(Restarting) as url:
        code, said = run(url, "import", str(file), "--yes")
    assert (posted, last_imports) == ([b"an archive"], [])
    if last == "mine":
        assert (code, said) == (0, f"Imported the state of {file}.\n")
    else:
        assert code == 1
        assert said == (
            f"Another import or undo has already replaced this state in the emulator at {url}: "
            "run the command again if this state is the one to keep.\n"
        )
