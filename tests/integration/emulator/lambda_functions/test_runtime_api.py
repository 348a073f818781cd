import http.client
import json
import threading
from collections.abc import Iterator
from contextlib import closing

import pytest

from container_runtime.runtime import Exit
from emulator.exceptions import WorkerFailure
from emulator.lambda_functions.invocation import Invocation
from emulator.lambda_functions.runtime_api import Answer, RuntimeApi

NEXT = "/2018-06-01/runtime/invocation/next"


@pytest.fixture
def api() -> Iterator[RuntimeApi]:
    made = RuntimeApi("127.0.0.1", lambda _: None)
    yield made
    made.close()


def ask(api: RuntimeApi, method: str, path: str, body: bytes | None = None, **headers: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(api.address, timeout=400)
    connection.request(method, path, body, headers)
    answer = connection.getresponse()
    status, content = answer.status, answer.read()
    connection.close()
    return status, content


def build_invocation(timeout_s: float = 60.0) -> Invocation:
    return Invocation("arn:fn", b'{"a": 1}', timeout_s)


def answer_next(api: RuntimeApi, kind: str, body: bytes | list[bytes]) -> None:
    connection = http.client.HTTPConnection(api.address, timeout=400)
    connection.request("GET", NEXT)
    got = connection.getresponse()
    got.read()
    request_id = got.headers["Lambda-Runtime-Aws-Request-Id"]
    connection.request("POST", f"/2018-06-01/runtime/invocation/{request_id}/{kind}", body)
    connection.getresponse().read()
    connection.close()


@pytest.mark.parametrize("body", [b"[1]", [b"[", b"1]"]], ids=["whole", "chunked"])
@pytest.mark.parametrize(("kind", "failed"), [("response", False), ("error", True)])
def test_invocation_and_its_answer(api: RuntimeApi, kind: str, failed: bool, body: bytes | list[bytes]) -> None:
    worker = threading.Thread(target=answer_next, args=(api, kind, body))
    worker.start()
    assert api.run(build_invocation(), 60.0) == Answer(b"[1]", failed)
    worker.join()


def test_requests_from_elsewhere_are_refused(api: RuntimeApi) -> None:
    assert ask(api, "GET", NEXT, Host="attacker.example")[0] == 403
    assert ask(api, "GET", NEXT, Origin="http://127.0.0.1")[0] == 403
    assert ask(api, "GET", "/elsewhere")[0] == 404
    assert ask(api, "POST", "/elsewhere", b"")[0] == 404


def test_answer_to_nothing_is_refused(api: RuntimeApi) -> None:
    assert ask(api, "POST", "/2018-06-01/runtime/invocation/0-0/response", b"1")[0] == 400
    assert ask(api, "POST", "/2018-06-01/runtime/init/error", b"", **{"Content-Length": "99999999"})[0] == 413


def test_a_connection_goes_on_after_a_chunked_answer_with_a_trailer(api: RuntimeApi) -> None:
    connection = http.client.HTTPConnection(api.address, timeout=400)
    for _ in range(2):
        connection.putrequest("POST", "/2018-06-01/runtime/invocation/0-0/response")
        connection.putheader("Transfer-Encoding", "chunked")
        connection.putheader("Trailer", "Lambda-Runtime-Function-Error-Type")
        connection.endheaders(b"2\r\n[]\r\n0\r\nLambda-Runtime-Function-Error-Type: none\r\n\r\n")
        answer = connection.getresponse()
        answer.read()
        assert answer.status == 400
    connection.close()


@pytest.mark.parametrize("size", [7_000_000, 40_000_000])
def test_a_chunked_answer_that_is_too_large_is_refused(api: RuntimeApi, size: int) -> None:
    """However much of it is still sent then: the connection is not reset, which would lose the refusal."""
    with closing(http.client.HTTPConnection(api.address, timeout=400)) as connection:
        too_large = (b"x" * 1_000_000 for _ in range(size // 1_000_000))
        connection.request("POST", "/2018-06-01/runtime/init/error", too_large, encode_chunked=True)
        assert connection.getresponse().status == 413


def test_an_init_error_that_is_no_json_is_its_text(api: RuntimeApi) -> None:
    assert ask(api, "POST", "/2018-06-01/runtime/init/error", b"no such file")[0] == 202
    with pytest.raises(WorkerFailure) as failure:
        api.run(build_invocation(), 60.0)
    assert json.loads(failure.value.payload) == {"errorType": "Runtime.InitError", "errorMessage": "no such file"}


def test_init_error_is_what_the_caller_gets(api: RuntimeApi) -> None:
    error = {"errorType": "Runtime.ImportModuleError", "errorMessage": "no"}
    assert ask(api, "POST", "/2018-06-01/runtime/init/error", json.dumps(error).encode())[0] == 202
    with pytest.raises(WorkerFailure) as failure:
        api.run(build_invocation(), 60.0)
    assert json.loads(failure.value.payload) == error
    assert api.ended


@pytest.mark.parametrize(
    ("how", "text"),
    [
        (Exit(code=1), "exit status 1"),
        (Exit(code=137), "signal: killed"),
        (Exit(code=139), "signal: segmentation fault"),
        (Exit(code=137, out_of_memory=True), "raise the function's MemorySize"),
    ],
)
def test_the_exit_of_a_worker_is_reported(api: RuntimeApi, how: Exit, text: str) -> None:
    api.worker_exited(how)
    with pytest.raises(WorkerFailure) as failure:
        api.run(build_invocation(), 60.0)
    assert text in json.loads(failure.value.payload)["errorMessage"]


def test_worker_that_never_asks_is_timed_out(api: RuntimeApi) -> None:
    with pytest.raises(WorkerFailure, match=r"timed out after 0\.05 seconds"):
        api.run(build_invocation(), 0.05)
