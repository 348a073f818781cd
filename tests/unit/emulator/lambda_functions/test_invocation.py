"""Tests of the text of the error that a function failed with."""

import json
from typing import Any

import pytest

from emulator.lambda_functions.invocation import InvocationResult

IN_PYTHON = [
    '  File "/var/task/index.py", line 9, in handler\n    stop(event)\n',
    '  File "/var/task/jobs/stop.py", line 4, in stop\n    json.loads("{")\n',
    '  File "/usr/lib/python3.11/json/__init__.py", line 346, in loads\n    return decode(s)\n',
]
IN_NODE = ["Error: no luck", "    at stop (/var/task/stop.js:4:9)", "    at handler (/var/task/index.js:9:3)"]


@pytest.mark.parametrize(
    ("trace", "place"),
    [
        ({"stackTrace": IN_PYTHON}, " (jobs/stop.py, line 4)"),
        ({"trace": IN_NODE}, " (stop.js, line 4)"),
        ({"stackTrace": IN_PYTHON[2:]}, ""),
        ({"stackTrace": []}, ""),
        ({"stackTrace": 7}, ""),
        ({"trace": [None]}, ""),
        ({"trace": 7}, ""),
        ({}, ""),
    ],
)
def test_an_error_has_the_innermost_line_of_the_functions_own_code(trace: dict[str, Any], place: str) -> None:
    payload = json.dumps({"errorType": "Error", "errorMessage": "no luck", **trace}).encode()
    assert InvocationResult("id", payload, "Unhandled").error_text == f"Error: no luck{place}"


@pytest.mark.parametrize(("payload", "text"), [(b"7", "7"), (b"not JSON", "not JSON")])
def test_an_error_of_another_form_is_its_text(payload: bytes, text: str) -> None:
    assert InvocationResult("id", payload, "Unhandled").error_text == text
