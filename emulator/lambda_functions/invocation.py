"""One invocation of a function: input, result, and Lambda's error texts."""

import json
import re
import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple

from emulator.exceptions import WorkerFailure

# Of the function itself: `File "/var/task/index.py", line 3` in a trace of Python, `/var/task/index.js:3` of Node.
_OWN_LINE = re.compile(r"""/var/task/([^":\n]+)(?:", line |:)(\d+)""")


@dataclass(frozen=True, slots=True)
class Invocation:
    """The input of one invocation.

    Attributes:
        function_arn: the function's ARN as the caller specified it, with the qualifier.
        payload: JSON, UTF-8.
        timeout_s: the time limit in seconds, counted from the moment at which the worker gets the invocation.
        client_context: the caller's ClientContext, decoded JSON text.
        request_id: the request id, a UUID.
    """

    function_arn: str
    payload: bytes = field(repr=False)
    timeout_s: float
    client_context: str | None = None
    request_id: str = field(default_factory=lambda: str(uuid.uuid4()))


class InvocationResult(NamedTuple):
    """The result of one invocation.

    Attributes:
        request_id: the request id of the invocation.
        payload: the function's JSON response, or an error object.
        function_error: ``Unhandled`` if the function failed, else None. Lambda has had no other value for years.
        version: the version of the function that ran.
        log_tail: the last 4 KiB of this invocation's log; empty unless requested.
    """

    request_id: str
    payload: bytes
    function_error: str | None = None
    version: str = "$LATEST"
    log_tail: str = ""

    @property
    def error_text(self) -> str:
        """The type and the message of the error that the function failed with, and the line of its code if known."""
        try:
            error = json.loads(self.payload)
        except ValueError:
            return self.payload[:500].decode(errors="replace")
        if not isinstance(error, dict):
            return str(error)
        place = _find_own_line(error)
        return f"{error.get('errorType')}: {error.get('errorMessage')}{f' ({place})' if place else ''}"


def _find_own_line(error: dict[str, Any]) -> str:
    """Find the innermost line of the function's own files in an error object; an empty text if none is there.

    >>> _find_own_line({"trace": ["TypeError: x", "    at handler (file:///var/task/index.mjs:3:9)"]})
    'index.mjs, line 3'
    """
    # Python has the innermost call last, in `stackTrace`; Node has it first, in `trace`.
    in_python, in_node = (error.get(name) for name in ("stackTrace", "trace"))
    calls = reversed(in_python) if isinstance(in_python, list) else in_node if isinstance(in_node, list) else ()
    found = (_OWN_LINE.search(call) for call in calls if isinstance(call, str))
    return next((f"{match[1]}, line {match[2]}" for match in found if match), "")


def build_timeout(request_id: str, timeout_s: float) -> WorkerFailure:
    """Build the error for a function that took longer than its Timeout."""
    text = f"Task timed out after {timeout_s:.2f} seconds"
    moment = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
    return WorkerFailure(
        {"errorType": "Sandbox.Timedout", "errorMessage": f"RequestId: {request_id} Error: {text}"},
        f"{moment} {request_id} {text}",
    )


def build_exit(request_id: str, code: int, out_of_memory: bool = False) -> WorkerFailure:
    """Build the error for a worker that ended during an invocation. In ``code``, signal N is 128 + N."""
    status = f"signal: {_signal_name(code)}" if out_of_memory or code > 128 else f"exit status {code}"
    text = f"RequestId: {request_id} Error: Runtime exited with error: {status}"
    if out_of_memory:
        text += " (out of memory: raise the function's MemorySize)"
    return WorkerFailure({"errorType": "Runtime.ExitError", "errorMessage": text}, f"{text}\nRuntime.ExitError")


def build_start_failure(request_id: str, reason: str) -> WorkerFailure:
    """Build the error for a worker that could not be started. ``reason`` should also say what to do."""
    text = f"RequestId: {request_id} Error: {reason}"
    return WorkerFailure({"errorType": "Runtime.StartFailure", "errorMessage": text}, f"[ERROR] {text}")


def _signal_name(code: int) -> str:
    return {137: "killed", 143: "terminated", 139: "segmentation fault", 134: "aborted"}.get(code, str(code - 128))
