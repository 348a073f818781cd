"""Tests of requests that come while the emulator starts."""

import http.client
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from container_runtime.process.loopback_network import draw_port
from tests.waiting import wait_until

_SIGNED = "AWS4-HMAC-SHA256 Credential=AKIA/20260101/us-east-1/{}/aws4_request, SignedHeaders=host, Signature=0"
_JSON = {"Content-Type": "application/x-amz-json-1.1"}
_LIST_JOBS = {"Authorization": _SIGNED.format("sagemaker"), "X-Amz-Target": "SageMaker.ListTrainingJobs", **_JSON}
_REQUESTS = [
    ("GET", "/_emulator/health", None, {}),
    ("GET", "/_emulator/jobs", None, {}),
    ("GET", "/", None, {"Authorization": _SIGNED.format("s3")}),
    ("POST", "/", b"{}", _LIST_JOBS),
]


@pytest.mark.slow
def test_they_are_answered_from_the_first_connection_on(tmp_path: Path) -> None:
    port = draw_port()
    command = [sys.executable, "-P", "-m", "emulator", "start", "--port", str(port), "--runtime", "process"]
    log = tmp_path / "log"

    def ask(request: tuple[str, str, bytes | None, dict[str, str]]) -> int:
        method, path, body, headers = request
        statuses: list[int] = []

        def answer() -> bool:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=400)
            try:
                connection.request(method, path, body, headers)
                statuses.append(connection.getresponse().status)
            except ConnectionError:
                return False
            finally:
                connection.close()
            return True

        wait_until(answer, f"{method} {path} is answered")
        return statuses[-1]

    with (
        log.open("wb") as output,
        subprocess.Popen([*command, "--state-dir", str(tmp_path / "state")], stdout=output, stderr=output) as emulator,
        ThreadPoolExecutor(len(_REQUESTS)) as pool,
    ):
        try:
            assert list(pool.map(ask, _REQUESTS)) == [200] * len(_REQUESTS), log.read_text()
        finally:
            emulator.terminate()
    assert "Traceback" not in log.read_text()
