"""The development server of the console."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest


class Echo(BaseHTTPRequestHandler):
    """Answers with what it was asked."""

    def do_GET(self) -> None:
        sent = {"path": self.path, "host": self.headers["Host"], "origin": self.headers["Origin"]}
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(sent).encode())

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Print nothing."""


@pytest.fixture
def emulator() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Echo)
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield f"127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


@contextmanager
def serve(emulator: str) -> Iterator[str]:
    command = [sys.executable, "-m", "emulator.console.dev", "--emulator", f"http://{emulator}", "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert process.stdout is not None
    try:
        line = next(each for each in process.stdout if each.startswith("http://"))
        yield line.partition("/console")[0]
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()


def ask(address: str, **headers: str) -> str:
    with urlopen(Request(address, headers=headers), timeout=400) as answer:
        text: str = answer.read().decode()
        return text


def test_the_page_is_made_of_the_sources_and_answered_by_the_emulator(emulator: str) -> None:
    with serve(emulator) as address:
        page = ask(f"{address}/console")
        assert "/_emulator/console/main.js" in page
        script = ask(f"{address}/_emulator/console/main.js")
        assert "TensorTree" in script
        assert "--back" in ask(f"{address}/_emulator/console/main.css")
        with urlopen(Request(f"{address}/esbuild", headers={"Accept": "text/event-stream"}), timeout=400) as reloads:
            assert reloads.headers["Content-Type"] == "text/event-stream"
        sent = json.loads(ask(f"{address}/_emulator/jobs?words=a%20b", Origin=address))
        assert sent == {"path": "/_emulator/jobs?words=a%20b", "host": emulator, "origin": f"http://{emulator}"}


def test_what_other_sites_ask_for_is_not_passed_on_as_the_page_s_own(emulator: str) -> None:
    with serve(emulator) as address:
        sent = json.loads(ask(f"{address}/_emulator/jobs", Origin="http://elsewhere.example"))
        assert sent["origin"] == "http://elsewhere.example"
        with pytest.raises(HTTPError, match="403"):
            ask(f"{address}/_emulator/jobs", Host="elsewhere.example")


def test_an_emulator_that_does_not_answer_is_named() -> None:
    with serve("127.0.0.1:9") as address, pytest.raises(HTTPError, match="502") as refused:
        ask(f"{address}/_emulator/jobs")
    assert "http://127.0.0.1:9 does not answer" in json.load(refused.value)["error"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--port", "99999"], "not a port from 0 to 65535"),
        (["--emulator", "https://127.0.0.1"], "not an address such as http://"),
    ],
)
def test_an_option_that_cannot_be_used_is_named(arguments: list[str], said: str) -> None:
    command = [sys.executable, "-m", "emulator.console.dev", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert said in done.stderr
