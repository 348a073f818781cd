"""Lambda Runtime API: a worker fetches invocations and posts results.

Each worker has its own listener instead of a path on the emulator's port, because of the behaviour of awslambdaric
4.2.2:

* Its C client accepts a path in AWS_LAMBDA_RUNTIME_API. Its Python code, which reports modules that cannot be imported,
  passes the value to ``http.client`` as host and port, and fails with ``InvalidURL`` if it contains a path.
* Nothing else in its requests identifies the worker.
* If the response to ``next`` is not an invocation, the process ends (for status 204, with a segmentation fault).
  Therefore, a poll can have no time limit. On the emulator's port, each idle worker would occupy a thread of the server
  forever. If all threads were occupied by callers that wait for functions, the functions could not post their results.

The kernel chooses the port, which is open only while its worker exists. The listener only accepts requests with its own
address as Host and without an Origin header, so web pages cannot use it.
"""

import json
import logging
import re
import select
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar, NamedTuple

from container_runtime.runtime import Exit
from emulator.exceptions import WorkerFailure
from emulator.lambda_functions.invocation import Invocation, build_exit, build_timeout

logger = logging.getLogger(__name__)

_RUNTIME = "/2018-06-01/runtime"
_ANSWER = re.compile(rf"{_RUNTIME}/invocation/([0-9a-f-]+)/(response|error)")
# Lambda's limit for a function's response: 6 MiB and some space for the envelope.
_MAX_BODY_BYTES = 6_291_556 + 100_000
# Of a chunk's size or of a trailer.
_MAX_LINE_BYTES = 65_536
# How long nothing may come of a body that is too large, before its connection is closed.
_REST_SECONDS = 5.0


class Answer(NamedTuple):
    """The worker's response to one invocation."""

    payload: bytes
    failed: bool


class RuntimeApi:
    """The listener of one worker. Thread safe. It has at most one invocation at a time."""

    def __init__(self, host: str, on_handed_out: Callable[[Invocation], None]) -> None:
        """Listen on a free port of ``host``.

        Args:
            host: the address at which the worker reaches this host.
            on_handed_out: called just before an invocation is sent to the worker.
        """
        self._changed = threading.Condition()
        self._on_handed_out = on_handed_out
        self._waiting: Invocation | None = None
        self._current: Invocation | None = None
        self._answer: Answer | None = None
        self._init_error: bytes | None = None
        self._exit: Exit | None = None
        self._handed_out_at = 0.0
        self._ready_at: float | None = None
        self._closed = False
        self._server = _Server((host, 0), self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), name="lambda-runtime-api")
        self._thread.daemon = True
        self._thread.start()

    def take(self, listening: socket.socket) -> None:
        """Also accept connections on another listening socket, until it is shut down."""
        threading.Thread(target=self._accept, args=(listening,), name="lambda-runtime-sidecar", daemon=True).start()

    def _accept(self, listening: socket.socket) -> None:
        with listening:
            while True:
                try:
                    connection, address = listening.accept()
                except OSError:
                    return  # it was shut down
                self._server.process_request(connection, address)

    @property
    def port(self) -> int:
        """The port of ``address``."""
        return int(self._server.server_address[1])

    @property
    def address(self) -> str:
        """``host:port``, the value of AWS_LAMBDA_RUNTIME_API."""
        host, port = self._server.server_address[:2]
        return f"{host!s}:{port}"

    @property
    def ready_at(self) -> float | None:
        """``time.monotonic()`` of the worker's first request for work, None before that."""
        return self._ready_at

    @property
    def ended(self) -> bool:
        """Whether the worker can no longer process invocations."""
        return self._closed or self._exit is not None or self._init_error is not None

    def run(self, invocation: Invocation, start_timeout: float) -> Answer:
        """Send ``invocation`` to the worker and wait for its response.

        Args:
            invocation: the invocation.
            start_timeout: the maximum number of seconds until the worker requests the invocation.

        Raises:
            WorkerFailure: the worker could not start, ended, or took longer than the invocation's timeout.
        """
        with self._changed:
            self._waiting = invocation
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._current is invocation or self.ended, start_timeout)
            if self._current is invocation:
                left = self._handed_out_at + invocation.timeout_s - time.monotonic()
                self._changed.wait_for(lambda: self._answer is not None or self.ended, max(0.0, left))
            answer, self._answer = self._answer, None
            self._waiting = self._current = None
            if answer is None:
                raise self._failure(invocation, start_timeout)
            return answer

    def worker_exited(self, how: Exit) -> None:
        """Record that the worker's process has ended."""
        with self._changed:
            self._exit = how
            self._changed.notify_all()

    def close(self) -> None:
        """Stop listening. A worker that waits for an invocation loses its connection. Idempotent."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _failure(self, invocation: Invocation, start_timeout: float) -> WorkerFailure:
        """Build the error for a missing response. The caller must hold the lock."""
        if self._init_error is not None:
            return WorkerFailure(_read_init_error(self._init_error), "")
        if self._exit is not None:
            return build_exit(invocation.request_id, self._exit.code, self._exit.out_of_memory)
        if self._closed:
            return WorkerFailure(
                {"errorType": "Runtime.Closed", "errorMessage": f"RequestId: {invocation.request_id} Error: shut down"},
                "The emulator was shut down while the function ran.",
            )
        return build_timeout(invocation.request_id, invocation.timeout_s if self._ready_at else start_timeout)

    def next_invocation(self, is_connected: Callable[[], bool]) -> Invocation | None:
        """Wait for the worker's next invocation; None if the worker disconnects or this listener closes first."""
        with self._changed:
            if self._ready_at is None:
                self._ready_at = time.monotonic()
                self._changed.notify_all()
            while self._waiting is None:
                if self.ended or not is_connected():
                    return None
                self._changed.wait(30.0)
            invocation, self._waiting = self._waiting, None
        self._on_handed_out(invocation)
        with self._changed:
            self._handed_out_at = time.monotonic()
            self._current = invocation
            self._changed.notify_all()
        return invocation

    def take_answer(self, request_id: str, answer: Answer) -> bool:
        """Store the worker's response; return False if no caller waits for this invocation any more."""
        with self._changed:
            if self._current is None or self._current.request_id != request_id:
                return False
            self._answer = answer
            self._changed.notify_all()
            return True

    def take_init_error(self, payload: bytes) -> None:
        """Store the worker's initialization error. The worker then ends by itself."""
        with self._changed:
            self._init_error = payload
            self._changed.notify_all()


class _Server(ThreadingHTTPServer):
    # Threads are not joined: a connection that waits for work ends when the API closes.
    daemon_threads = True

    def __init__(self, address: tuple[str, int], api: RuntimeApi) -> None:
        self.api = api
        super().__init__(address, _Handler)


class _Handler(BaseHTTPRequestHandler):
    """Routes of the Runtime API. The connection is kept open, so the worker does not need one for each request."""

    protocol_version = "HTTP/1.1"
    server: _Server
    # Without this, delayed ACKs would slow down each small response by 40 ms.
    disable_nagle_algorithm: ClassVar[bool] = True
    wbufsize = -1

    def do_GET(self) -> None:
        if not self._is_allowed():
            return
        if self.path != f"{_RUNTIME}/invocation/next":
            self._reply(HTTPStatus.NOT_FOUND)
            return
        invocation = self.server.api.next_invocation(self._is_connected)
        if invocation is None:
            self.close_connection = True
            return
        deadline = int((time.time() + invocation.timeout_s) * 1000)
        headers = {
            "Lambda-Runtime-Aws-Request-Id": invocation.request_id,
            "Lambda-Runtime-Deadline-Ms": str(deadline),
            "Lambda-Runtime-Invoked-Function-Arn": invocation.function_arn,
            "Content-Type": "application/json",
        }
        if invocation.client_context is not None:
            headers["Lambda-Runtime-Client-Context"] = invocation.client_context
        self._reply(HTTPStatus.OK, invocation.payload, headers)

    def do_POST(self) -> None:
        if not self._is_allowed():
            return
        body = self._read_body()
        if body is None:
            self.close_connection = True
            self._reply(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
            self._take_rest()
            return
        if self.path == f"{_RUNTIME}/init/error":
            self.server.api.take_init_error(body)
            self._reply(HTTPStatus.ACCEPTED)
            return
        route = _ANSWER.fullmatch(self.path)
        if route is None:
            self._reply(HTTPStatus.NOT_FOUND)
            return
        taken = self.server.api.take_answer(route[1], Answer(body, failed=route[2] == "error"))
        self._reply(HTTPStatus.ACCEPTED if taken else HTTPStatus.BAD_REQUEST)

    def _read_body(self) -> bytes | None:
        """Read the body of a request, which Go's client sends in chunks; None if it is too large.

        Raises:
            ValueError: A chunk's size is not a number.
        """
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            length = int(self.headers.get("Content-Length") or 0)
            return None if length > _MAX_BODY_BYTES else self.rfile.read(length)
        body = b""
        while length := int(self.rfile.readline(_MAX_LINE_BYTES).partition(b";")[0], 16):
            if not 0 < length <= _MAX_BODY_BYTES - len(body):
                return None
            body += self.rfile.read(length)
            self.rfile.readline(_MAX_LINE_BYTES)
        while self.rfile.readline(_MAX_LINE_BYTES).strip():
            pass  # a trailer
        return body

    def _take_rest(self) -> None:
        """Take what is still sent of a body: a connection that is closed before resets, and the answer is lost."""
        self.wfile.flush()
        self.connection.shutdown(socket.SHUT_WR)
        self.connection.settimeout(_REST_SECONDS)
        with suppress(OSError):
            while self.connection.recv(_MAX_LINE_BYTES):
                pass

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        logger.debug(format, *args)

    def _is_allowed(self) -> bool:
        if self.headers.get("Host") == self.server.api.address and "Origin" not in self.headers:
            return True
        self.close_connection = True
        self._reply(HTTPStatus.FORBIDDEN)
        return False

    def _is_connected(self) -> bool:
        """Check whether the worker is connected. If a worker is killed, its connection becomes readable."""
        readable, _, _ = select.select([self.connection], [], [], 0)
        return not readable

    def _reply(self, status: HTTPStatus, body: bytes = b"", headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _read_init_error(body: bytes) -> Any:
    """Return the error that a runtime reports about its start, which need not be the JSON that AWS documents."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return {"errorType": "Runtime.InitError", "errorMessage": body.decode(errors="replace")}
